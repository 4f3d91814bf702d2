package cell

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"

	"swarmdeck/engine/core"
)

// Marker is the environment variable that names a process's run:
// "INSTANCE/RUN".
const Marker = "SWARMDECK_RUN"

// inherited are the variables a command gets from the engine's environment.
// Everything else stays out: tokens and keys of the operator's shell are
// nothing an agent should find by accident.
var inherited = []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"}

// Traceparent is the variable that carries the W3C trace context into a
// process (OpenTelemetry, environment variables as context carriers).
const Traceparent = "TRACEPARENT"

// Traced adds the trace context to an environment that has none.
func Traced(env map[string]string, parent string) map[string]string {
	if _, given := env[Traceparent]; given || parent == "" {
		return env
	}
	with := make(map[string]string, len(env)+1)
	maps.Copy(with, env)
	with[Traceparent] = parent
	return with
}

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// environ builds a command's environment: the inherited variables, TERM=dumb,
// what was given, and the mark.
func environ(given map[string]string, mark string) map[string]string {
	vars := map[string]string{"PATH": defaultPath, "HOME": "/", "LANG": "C.UTF-8"}
	for _, name := range inherited {
		if v, ok := os.LookupEnv(name); ok && v != "" {
			vars[name] = v
		}
	}
	vars["TERM"] = "dumb"
	for name, v := range given {
		vars[name] = v
	}
	vars[Marker] = mark
	return vars
}

// list is an environment as the kernel takes it, sorted.
func list(vars map[string]string) []string {
	list := make([]string, 0, len(vars))
	for name, v := range vars {
		list = append(list, name+"="+v)
	}
	sort.Strings(list)
	return list
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// The kernel refuses a single string of 128 KiB or more.
const (
	maxString = 128<<10 - 1
	maxWords  = 4096
	maxVars   = 512
)

// CheckCommand reports an argument list that can't be a command.
func CheckCommand(field string, argv []string) error {
	if len(argv) == 0 || argv[0] == "" {
		return core.Invalid(field, "", "a program and its arguments")
	}
	if len(argv) > maxWords {
		return core.Invalid(field, len(argv), "at most 4096 words")
	}
	for _, a := range argv {
		if strings.IndexByte(a, 0) >= 0 {
			return core.Invalid(field, a, "words without NUL bytes")
		}
		if len(a) > maxString {
			return core.Invalid(field, a, "words under 128 KiB; longer data belongs on stdin")
		}
	}
	return nil
}

// CheckEnv reports variables that can't be passed on.
func CheckEnv(env map[string]string) error {
	if len(env) > maxVars {
		return core.Invalid("env", len(env), "at most 512 variables")
	}
	for name, v := range env {
		switch {
		case !envName.MatchString(name):
			return core.Invalid("env", name, "names of letters, digits and _, not starting with a digit")
		case name == Marker:
			return core.Invalid("env", name, "any name but "+Marker+", which marks the run")
		case strings.IndexByte(v, 0) >= 0 || len(name)+len(v)+1 > maxString:
			return core.Errorf(core.InvalidInput, "env.%s: wants a value under 128 KiB without NUL bytes", name).With("field", "env."+name) // which may be a credential
		}
	}
	return nil
}

// CheckDir returns the absolute form of a working directory, base for "".
func CheckDir(dir, base string) (string, error) {
	if dir == "" {
		return base, nil
	}
	if strings.IndexByte(dir, 0) >= 0 || len(dir) > 4096 {
		return "", core.Invalid("dir", dir, "a path under 4096 bytes")
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(base, dir)
	}
	return filepath.Clean(dir), nil
}

// pathOf is the PATH that a command's environment will hold.
func pathOf(env map[string]string) string {
	if p, ok := env["PATH"]; ok {
		return p
	}
	if p := os.Getenv("PATH"); p != "" {
		return p
	}
	return defaultPath
}

// Program is where the command's program is, "" where it is not found.
func (s *Spec) Program() string {
	path, _ := find(s.Argv[0], s.Env, s.Dir)
	return path
}

// find locates a program as execvp would, in the command's own PATH and
// directory. Relative entries of PATH are skipped: what runs must not depend
// on what lies in the working directory.
func find(name string, env map[string]string, dir string) (string, error) {
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		return name, runnable(name)
	}
	var denied error
	for _, d := range filepath.SplitList(pathOf(env)) {
		if !filepath.IsAbs(d) {
			continue
		}
		path := filepath.Join(d, name)
		err := runnable(path)
		if err == nil {
			return path, nil
		}
		if os.IsPermission(err) && denied == nil {
			denied = err
		}
	}
	if denied != nil {
		return "", denied
	}
	return "", &os.PathError{Op: "find in PATH", Path: name, Err: os.ErrNotExist}
}

func runnable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.IsDir() || info.Mode()&0o111 == 0 {
		return &os.PathError{Op: "run", Path: path, Err: os.ErrPermission}
	}
	return nil
}
