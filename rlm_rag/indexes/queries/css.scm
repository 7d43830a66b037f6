(rule_set (selectors) @name) @rule
(keyframes_statement (keyframes_name) @name) @rule
(media_statement . "@media" . (_) @name) @rule
((declaration (property_name) @name) @variable (#match? @name "^--"))
