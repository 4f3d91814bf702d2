package cell

import "golang.org/x/sys/unix"

// elderAskings are those that other architectures have not.
func elderAskings() []asking {
	in := func(dir int, path string) string {
		if dir == unix.AT_FDCWD {
			return path
		}
		return "/proc/self/cwd/" + path
	}
	buf := func() []byte { return make([]byte, 512) }
	return []asking{
		{"stat", func(d int, p string) (string, error) { return toldBy(unix.SYS_STAT, in(d, p), buf()) }},
		{"lstat", func(d int, p string) (string, error) { return toldBy(unix.SYS_LSTAT, in(d, p), buf()) }},
		{"access", func(d int, p string) (string, error) { return toldBy(unix.SYS_ACCESS, in(d, p), unix.F_OK) }},
		{"readlink", func(d int, p string) (string, error) { return toldBy(unix.SYS_READLINK, in(d, p), buf(), 512) }},
	}
}

// elderHarms are those that other architectures have not.
func elderHarms(by func(string, bool, func(string, uint32)) attempt, call func(uintptr, ...uintptr), at func(string) uintptr) []attempt {
	return []attempt{
		by("chmod call", true, func(path string, mode uint32) { call(unix.SYS_CHMOD, at(path), uintptr(mode)) }),
		by("creat", false, func(path string, mode uint32) { call(unix.SYS_CREAT, at(path), uintptr(mode)) }),
		by("open", false, func(path string, mode uint32) {
			call(unix.SYS_OPEN, at(path), unix.O_CREAT|unix.O_RDWR, uintptr(mode))
		}),
		by("mknod call", false, func(path string, mode uint32) { call(unix.SYS_MKNOD, at(path), uintptr(unix.S_IFREG|mode), 0) }),
		by("mknod of a device", false, func(path string, _ uint32) { call(unix.SYS_MKNOD, at(path), unix.S_IFCHR|0o666, 0) }),
	}
}
