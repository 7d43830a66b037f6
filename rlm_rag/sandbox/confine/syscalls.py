"""Numbers of the Linux system calls that a sealed worker may make, by architecture.

Each table is a text of `name:x86-64:generic`, the generic numbers being those of every
architecture since 2012 (aarch64, riscv64); `-` where it has no such call. Source: the kernel's
`arch/x86/entry/syscalls/syscall_64.tbl` and `include/uapi/asm-generic/unistd.h`.
"""

from __future__ import annotations

from dataclasses import dataclass

# What needs no look at its arguments and changes no file's name, mode or size.
_HARMLESS = """
    read:0:63 write:1:64 open:2:- close:3:57 stat:4:- fstat:5:80 lstat:6:- poll:7:- lseek:8:62
    mprotect:10:226 munmap:11:215 brk:12:214 rt_sigaction:13:134
    rt_sigprocmask:14:135 rt_sigreturn:15:139 pread64:17:67 pwrite64:18:68 readv:19:65
    writev:20:66 access:21:- pipe:22:- select:23:- sched_yield:24:124
    msync:26:227 mincore:27:232 madvise:28:233 dup:32:23 dup2:33:- pause:34:- nanosleep:35:101
    getitimer:36:102 alarm:37:- setitimer:38:103 getpid:39:172 sendfile:40:71 shutdown:48:210
    getsockname:51:204 getpeername:52:205 getsockopt:55:209 exit:60:93 wait4:61:260 uname:63:160
    getdents:78:- getcwd:79:17 chdir:80:49 fchdir:81:50 readlink:89:- umask:95:166
    gettimeofday:96:169 getrlimit:97:163 getrusage:98:165 sysinfo:99:179 times:100:153
    getuid:102:174 getgid:104:176 geteuid:107:175 getegid:108:177 getppid:110:173 getpgrp:111:-
    getgroups:115:158 getresuid:118:148 getresgid:120:150 getpgid:121:155 getsid:124:156
    rt_sigpending:127:136 rt_sigtimedwait:128:137 rt_sigsuspend:130:133 sigaltstack:131:132
    statfs:137:43 fstatfs:138:44 getpriority:140:141 sched_getparam:143:121
    sched_getscheduler:145:120 sched_get_priority_max:146:125 sched_get_priority_min:147:126
    arch_prctl:158:- gettid:186:178 readahead:187:213 time:201:- futex:202:98
    sched_getaffinity:204:123 epoll_create:213:- getdents64:217:61 set_tid_address:218:96
    restart_syscall:219:128 fadvise64:221:223 clock_gettime:228:113 clock_getres:229:114
    clock_nanosleep:230:115 exit_group:231:94 epoll_wait:232:- epoll_ctl:233:21 waitid:247:95
    openat:257:56 newfstatat:262:79 readlinkat:267:78 faccessat:269:48 pselect6:270:72
    ppoll:271:73 set_robust_list:273:99 epoll_pwait:281:22 eventfd:284:- eventfd2:290:19
    epoll_create1:291:20 dup3:292:24 pipe2:293:59 preadv:295:69 pwritev:296:70 getcpu:309:168
    getrandom:318:278 membarrier:324:283 copy_file_range:326:285 preadv2:327:286
    pwritev2:328:287 statx:332:291 rseq:334:293 close_range:436:436 faccessat2:439:439
    epoll_pwait2:441:441 futex_waitv:449:449
"""

# What writes to a file system beyond an open file's bytes: only where a scratch folder exists.
_WRITING = """
    fsync:74:82 fdatasync:75:83 truncate:76:45 ftruncate:77:46 rename:82:-
    mkdir:83:- rmdir:84:- creat:85:- link:86:- unlink:87:- symlink:88:- utime:132:-
    utimes:235:- mkdirat:258:34 unlinkat:263:35 renameat:264:38 linkat:265:37 symlinkat:266:36
    utimensat:280:88 fallocate:285:47 renameat2:316:276
"""

# What is allowed for some arguments only, or answered without being done.
_CHECKED = """
    mmap:9:222 ioctl:16:29 sendto:44:206 recvfrom:45:207 socketpair:53:199 clone:56:220
    kill:62:129 fcntl:72:25 flock:73:32 chmod:90:- fchmod:91:52 prctl:157:167 tgkill:234:131
    fchmodat:268:53 prlimit64:302:261 clone3:435:435 fchmodat2:452:452
"""


@dataclass(frozen=True, slots=True)
class Machine:
    """One architecture: its audit number (`linux/audit.h`), and its calls by name.

    `first_foreign` is where the numbers of another calling convention begin, 0 for none.
    """

    audit: int
    first_foreign: int
    harmless: dict[str, int]
    writing: dict[str, int]
    checked: dict[str, int]


def _machine(audit: int, column: int, first_foreign: int = 0) -> Machine:
    return Machine(audit, first_foreign, *(_read(t, column) for t in _TABLES))


def _read(table: str, column: int) -> dict[str, int]:
    rows = (row.split(":") for row in table.split())
    return {row[0]: int(row[column]) for row in rows if row[column] != "-"}


_TABLES = (_HARMLESS, _WRITING, _CHECKED)

# By `os.uname().machine`. On x86-64, numbers from 2^30 are those of the x32 convention.
MACHINES = {
    "x86_64": _machine(0xC000003E, 1, 0x40000000),
    "aarch64": _machine(0xC00000B7, 2),
    "riscv64": _machine(0xC00000F3, 2),
}
