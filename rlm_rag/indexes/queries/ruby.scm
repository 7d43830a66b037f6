(module name: (_) @name) @module
(class name: (_) @name) @class
(method name: (_) @name) @method
(singleton_method name: (_) @name) @method
(assignment left: (constant) @name) @constant
(assignment left: (scope_resolution name: (constant) @name)) @constant
(operator_assignment left: (constant) @name) @constant
(alias name: (_) @name) @method
(call method: (identifier) @_m arguments: (argument_list [(simple_symbol) (string)] @name @property)
  (#any-of? @_m "attr_reader" "attr_writer" "attr_accessor" "attr" "cattr_accessor" "mattr_accessor" "class_attribute"))
(call method: (identifier) @_m arguments: (argument_list . [(simple_symbol) (string)] @name)
  (#any-of? @_m "define_method" "alias_method" "scope" "def_delegator" "define_singleton_method")) @method
