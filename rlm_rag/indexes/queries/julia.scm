(module_definition name: (_) @name) @module
(struct_definition (type_head [
  (identifier) @name
  (binary_expression . (identifier) @name)
  (parametrized_type_expression . (identifier) @name)
  (binary_expression . (parametrized_type_expression . (identifier) @name))])) @struct
(abstract_definition (type_head [
  (identifier) @name
  (binary_expression . (identifier) @name)
  (parametrized_type_expression . (identifier) @name)
  (binary_expression . (parametrized_type_expression . (identifier) @name))])) @type
(function_definition (signature [
  (call_expression . (_) @name)
  (typed_expression (call_expression . (_) @name))
  (where_expression (call_expression . (_) @name))
  (where_expression (typed_expression (call_expression . (_) @name)))
  (identifier) @name])) @function
(macro_definition (signature (call_expression . (_) @name))) @macro
(assignment . [
  (call_expression . (_) @name)
  (where_expression . (call_expression . (_) @name))
  (typed_expression . (call_expression . (_) @name))]) @function
(struct_definition (block [
  (identifier) @name
  (typed_expression . (identifier) @name)
  (assignment . [(identifier) @name (typed_expression . (identifier) @name)])
  (const_statement [(identifier) @name (typed_expression . (identifier) @name)])] @field))
(const_statement (assignment . (identifier) @name)) @constant
