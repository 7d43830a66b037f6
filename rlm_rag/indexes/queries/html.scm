(element (start_tag (tag_name) @_t) (#match? @_t "^[hH][1-6]$")) @name @heading
(attribute (attribute_name) @_a (quoted_attribute_value (attribute_value) @name) (#eq? @_a "id")) @id
