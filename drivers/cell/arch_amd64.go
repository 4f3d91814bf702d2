package cell

import "golang.org/x/sys/unix"

const architecture = unix.AUDIT_ARCH_X86_64
