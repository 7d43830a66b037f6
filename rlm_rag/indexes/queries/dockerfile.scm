(from_instruction as: (image_alias) @name) @stage
(from_instruction (image_spec) @name) @stage
(arg_instruction name: (_) @name) @variable
(env_pair name: (_) @name) @variable
