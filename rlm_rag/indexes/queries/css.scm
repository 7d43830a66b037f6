(rule_set (selectors (_) @name)) @rule
(keyframes_statement (keyframes_name) @name) @keyframes
(media_statement . "@media" . (_) @name) @media
((declaration (property_name) @name) @variable (#match? @name "^--"))
