CC := gcc
export dep_ci.mk = git
define tell
	@echo $(1)
endef
ifeq ($(X),1)
all:: tool
	$(CC) -o $@
endif
%.o lib/%.o: %.c
	$(CC)
