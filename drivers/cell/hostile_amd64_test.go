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
