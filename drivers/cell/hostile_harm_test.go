package cell

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"swarmdeck/expect"
)

// harm is left behind: files that others run as their owner, and devices.
const harm = "harm"

// harms reports whether a file does.
func harms(path string) bool {
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil {
		return false
	}
	kind := st.Mode & unix.S_IFMT
	return kind == unix.S_IFCHR || kind == unix.S_IFBLK || kind != unix.S_IFDIR && st.Mode&setID != 0
}

func attemptsToHarm() []attempt {
	at := func(s string) uintptr { return uintptr(unsafe.Pointer(&append([]byte(s), 0)[0])) }
	call := func(n uintptr, args ...uintptr) {
		args = append(args, 0, 0, 0, 0, 0, 0)
		_, _, _ = unix.Syscall6(n, args[0], args[1], args[2], args[3], args[4], args[5])
	}
	// by leaves what is at a path of its own when do is over; do may find a file there.
	by := func(name string, exists bool, do func(path string, mode uint32)) attempt {
		return attempt{family: harm, name: name, do: func(w *world) string {
			for _, dir := range []string{w.Dir, "/tmp", "."} {
				for _, mode := range []uint32{0o4755, 0o2755, 0o6755, 0o4111} {
					path := filepath.Join(dir, fmt.Sprintf("harm-%s-%o", strings.ReplaceAll(name, " ", "-"), mode))
					_ = os.Remove(path)
					if exists && os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755) != nil {
						continue
					}
					do(path, mode)
					if harms(path) {
						return fmt.Sprintf("%s %o", path, mode)
					}
					_ = os.Remove(path)
				}
			}
			return ""
		}}
	}
	shell := func(name, script string) attempt {
		return by(name, true, func(path string, mode uint32) {
			cmd := exec.Command("sh", "-c", script)
			cmd.Env = append(os.Environ(), "F="+path, fmt.Sprintf("M=%o", mode))
			_ = cmd.Run()
		})
	}
	list := []attempt{
		by("fchmod", true, func(path string, mode uint32) {
			if fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil {
				_ = unix.Fchmod(fd, mode)
				_ = unix.Close(fd)
			}
		}),
		by("fchmodat", true, func(path string, mode uint32) { call(unix.SYS_FCHMODAT, 0, at(path), uintptr(mode)) }),
		by("fchmodat with a long number", true, func(path string, mode uint32) {
			call(unix.SYS_FCHMODAT, 0, at(path), uintptr(mode)|0xff<<32|0x10000)
		}),
		by("fchmodat2", true, func(path string, mode uint32) { call(unix.SYS_FCHMODAT2, 0, at(path), uintptr(mode), 0) }),
		by("fchmodat2 of itself", true, func(path string, mode uint32) {
			if fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil {
				call(unix.SYS_FCHMODAT2, uintptr(fd), at(""), uintptr(mode), unix.AT_EMPTY_PATH)
				_ = unix.Close(fd)
			}
		}),
		by("fchmodat by proc", true, func(path string, mode uint32) {
			if fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil {
				_ = unix.Fchmodat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), mode, 0)
				_ = unix.Close(fd)
			}
		}),
		by("openat", false, func(path string, mode uint32) {
			if fd, err := unix.Openat(unix.AT_FDCWD, path, unix.O_CREAT|unix.O_EXCL|unix.O_RDWR|unix.O_CLOEXEC, mode); err == nil {
				_ = unix.Close(fd)
			}
		}),
		by("openat2", false, func(path string, mode uint32) {
			how := &unix.OpenHow{Flags: unix.O_CREAT | unix.O_EXCL | unix.O_RDWR | unix.O_CLOEXEC, Mode: uint64(mode)}
			if fd, err := unix.Openat2(unix.AT_FDCWD, path, how); err == nil {
				_ = unix.Close(fd)
			}
		}),
		by("a nameless file with a name", false, func(path string, mode uint32) {
			fd, err := unix.Open(filepath.Dir(path), unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, mode)
			if err != nil {
				return
			}
			_ = unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW)
			_ = unix.Close(fd)
		}),
		by("mknodat of a file", false, func(path string, mode uint32) {
			_ = unix.Mknodat(unix.AT_FDCWD, path, unix.S_IFREG|mode, 0)
		}),
		by("mknodat of a pipe", false, func(path string, mode uint32) {
			_ = unix.Mknodat(unix.AT_FDCWD, path, unix.S_IFIFO|mode, 0)
		}),
		by("mknodat of a whiteout", false, func(path string, mode uint32) {
			_ = unix.Mknodat(unix.AT_FDCWD, path, unix.S_IFCHR|mode&0o777, 0)
		}),
		by("mknodat of a disk", false, func(path string, _ uint32) {
			_ = unix.Mknodat(unix.AT_FDCWD, path, unix.S_IFBLK|0o666, int(unix.Mkdev(8, 0)))
		}),
		by("a whiteout by renaming", true, func(path string, _ uint32) {
			to := path + ".moved"
			_ = unix.Renameat2(unix.AT_FDCWD, path, unix.AT_FDCWD, to, unix.RENAME_WHITEOUT)
			_ = os.Remove(to)
		}),
		by("a ring of its own", false, func(path string, mode uint32) {
			params := make([]byte, 120)
			if fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 4, uintptr(unsafe.Pointer(&params[0])), 0); errno == 0 {
				_ = unix.Close(int(fd))
				_ = os.WriteFile(path, nil, 0o600)
				_ = unix.Chmod(path, mode)
			}
		}),
		by("a name for one of the system's", false, func(path string, _ uint32) {
			for _, from := range []string{"/usr/bin/su", "/bin/su", "/usr/bin/passwd", "/usr/bin/mount", "/dev/null", "/dev/zero"} {
				_ = unix.Linkat(unix.AT_FDCWD, from, unix.AT_FDCWD, path, 0)
				_ = unix.Renameat(unix.AT_FDCWD, from, unix.AT_FDCWD, path)
			}
		}),
		by("rights beside its mode", true, func(path string, _ uint32) {
			if unix.Setxattr(path, "security.capability", []byte{1, 0, 0, 2, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 0) == nil {
				_ = unix.Chmod(path, 0o4755)
			}
		}),
		shell("chmod", `chmod "$M" "$F"; chmod u+s "$F"; chmod g+s "$F"; chmod -R 6755 "$F"`),
		shell("install", `rm -f "$F"; install -m "$M" /bin/sh "$F"`),
		shell("cp", `rm -f "$F"; for p in su passwd mount newgrp ping; do cp -p "$(command -v $p)" "$F"; cp -a "$(command -v $p)" "$F"; done`),
		shell("mkdir and move", `d=$(mktemp -d "$F.XXXXXX"); chmod g+s "$d"; mkdir -m 6755 "$d/sub"; touch "$d/sub/x"; rm -f "$F"; mv "$d/sub/x" "$F"; rm -rf "$d"`),
		shell("tar", `rm -f "$F"; printf '#!/bin/sh\n' > "$F"; cd "${F%/*}"; n=${F##*/}; tar --mode="$M" -cf "$n.tar" "$n"; rm -f "$n"; tar -xpf "$n.tar"; rm -f "$n.tar"`),
		shell("mknod", `rm -f "$F"; mknod -m 666 "$F" b 8 0; mknod "$F" c 1 3`),
		shell("the shell's own mask", `rm -f "$F"; umask 0; umask u+s 2>/dev/null; : > "$F"`),
	}
	return append(list, elderHarms(by, call, at)...)
}

// TestNothingThatRunsAsItsOwnerIsLeft looks from outside, after real programs.
func TestNothingThatRunsAsItsOwnerIsLeft(t *testing.T) {
	for name, without := range map[string][]string{"all": nil, "no name spaces": {layerSpaces}, "no Landlock": {layerLandlock}} {
		for _, profile := range []Profile{Worker, Reader} {
			t.Run(name+" "+string(profile), func(t *testing.T) {
				var h heard
				s, dir := hearing(t, h.take, without...), yard(t)
				p := start(t, s, Spec{Run: "r", Dir: dir, Wall: Wall{Profile: profile}, Argv: sh(
					`cd "${TMPDIR:-/tmp}"; [ -w "$OLDPWD" ] && cd "$OLDPWD"; cp /bin/sh f; chmod 4755 f; echo $?; install -m 6755 /bin/sh g; mknod d c 0 0; echo $?; chmod 750 f; echo $?; stat -c %a f g`)})
				out := said(t, p)
				want := "1\n1\n0\n750\n600\n"
				if s.without(layerSpaces) { // there no mode is changed
					want = "1\n1\n1\n755\n600\n"
				}
				expect.Is(t, out, want, "it did")
				expect.Is(t, strings.Join(h.of("r"), " "), "device setid", "told")
				_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, _ error) error {
					expect.True(t, !harms(path), "%s is left", path)
					return nil
				})
			})
		}
	}
}

// TestOrdinaryProgramsDoWithoutModesThatHarm is work that names modes and
// succeeds.
func TestOrdinaryProgramsDoWithoutModesThatHarm(t *testing.T) {
	for name, without := range map[string][]string{"all": nil, "no name spaces": {layerSpaces}} {
		t.Run(name, func(t *testing.T) {
			s, dir := newSupervisor(t, without...), yard(t)
			scripts := []string{
				`umask 022; mkdir -p a/b; echo x >a/b/f; chmod 600 a/b/f; chmod +x a/b/f; chmod 1777 a; chmod -R u+w a; [ "$(stat -c %a a/b/f)" = 711 ]`,
				`cp -a a c; cp -rp a d; install -d e; install -m 755 a/b/f e/f; mkfifo p; mv p q; ln q r; ln -s q t`,
				`tar -cf a.tar a; rm -rf a; tar -xpf a.tar; [ -x a/b/f ]`,
				`cp -p "$(command -v su || command -v sh)" copy 2>/dev/null || true; [ -e copy ]`,
				`git init -q g && cd g && git -c user.name=x -c user.email=x@x commit -q --allow-empty -m m && cp ../e/f . && git add . && git -c user.name=x -c user.email=x@x commit -q -m n && git clone -q . ../h`,
			}
			if s.without(layerSpaces) { // there no mode, owner or time is changed
				scripts = []string{
					`umask 022; mkdir -p a/b; echo x >a/b/f; cp -r a c; install -d e; cp a/b/f e/f; mkfifo p; mv p q; ln q r; ln -s q t; tar -cf a.tar a`,
				}
			}
			for _, script := range scripts {
				p := start(t, s, Spec{Dir: dir, Wall: Wall{Profile: Worker}, Argv: sh("set -e; exec 2>&1; " + script + "; echo done")})
				out := said(t, p)
				expect.True(t, strings.HasSuffix(out, "done\n"), "%s: %s", script, out)
			}
		})
	}
}
