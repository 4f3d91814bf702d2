package command

import (
	"bytes"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"swarmdeck/engine/core"
	"swarmdeck/engine/safeopen"
)

// fileArg is a file or directory that a line names.
type fileArg struct {
	what   string // the flag or the command, for messages
	field  string
	source string // "file", "dir" or sourceText
	value  string
}

// eachFile visits the files and directories that a line names, up to the first
// error.
func (c *call) eachFile(s spec, args []string, visit func(fileArg) error) (err error) {
	is := func(source string) bool { return source == "file" || source == "dir" || source == sourceText }
	c.flags.Visit(func(f *pflag.Flag) {
		if from := f.Annotations[noteSource]; err == nil && len(from) > 0 && is(from[0]) {
			err = visit(fileArg{"--" + f.Name, f.Name, from[0], f.Value.String()})
		}
	})
	for i, arg := range args {
		if err != nil || len(s.args) == 0 {
			break
		}
		if from := s.args[min(i, len(s.args)-1)]; is(from) {
			err = visit(fileArg{commandPath(c.cmd), map[bool]string{true: "dir", false: "file"}[from == "dir"], from, arg})
		}
	}
	return err
}

// named refuses what no line may name as a file: "-" where there is no stdin or
// stdout to stand for it, and the engine's own files, whatever door the line
// came through.
func (c *call) named(s spec, args []string) error {
	path := commandPath(c.cmd)
	own, err := c.own()
	if err != nil {
		return err
	}
	return c.eachFile(s, args, func(f fileArg) error {
		switch {
		case f.value == "-" && (f.source == sourceText || f.field == "script" || path == "audit export"):
			return nil
		case f.value == "-":
			return usage(f.field, "%s: - is no file here; a file of that name is ./-", f.what)
		case f.field == "data", path == "store restore", path == "serve", c.env.Remote: // restores what one has kept; makes its host key; names no file
			return nil
		}
		if _, brought := c.env.Files[f.value]; brought && f.source == sourceText {
			return nil
		}
		value := f.value
		for _, word := range []string{"files:", "git:"} {
			value = strings.TrimPrefix(value, word)
		}
		if err := own.Check(c.env.path(value)); err != nil {
			return core.Errorf(core.Denied, "%s: %s is one of the engine's own files", f.what, core.Clip(f.value)).With("field", f.field).With("value", core.Clip(f.value))
		}
		return nil
	})
}

// own are the engine's own files.
func (c *call) own() (*safeopen.Own, error) {
	if c.env.Own != nil {
		return c.env.Own, nil
	}
	return safeopen.OwnFiles(c.g.Data)
}

// openFile opens a file that the line names.
func (c *call) openFile(path string) (*os.File, error) {
	own, err := c.own()
	if err != nil {
		return nil, err
	}
	return own.Open(c.env.path(path))
}

// makesFile refuses to write a file with --read-only, and for a viewer: who
// only reads leaves nothing behind.
func (c *call) makesFile() error {
	if c.g.ReadOnly {
		return core.Errorf(core.Denied, "%s: writes a file, and who only reads writes none", commandPath(c.cmd)).With("field", "read-only")
	}
	return nil
}

// change holds a line of a command that reads against what its change needs.
func (c *call) change(role Role) error {
	c.reads = false
	return c.permit(commandPath(c.cmd), spec{effect: Writes, role: role})
}

// namesPlace makes the path of a place that the engine writes absolute. It is
// one of this machine, and none of the engine's own.
func (c *call) namesPlace(path *string) error {
	if c.env.Remote {
		return onlyThere(commandPath(c.cmd), "path")
	}
	given := *path
	*path = c.env.path(given)
	own, err := c.own()
	if err == nil && own.Check(*path) != nil {
		err = core.Errorf(core.Denied, "path: %s is one of the engine's own files", core.Clip(given)).With("field", "path").With("value", core.Clip(given))
	}
	return err
}

// large opens a file that may be larger than an argument.
func (c *call) large(field, path string) (io.ReadCloser, error) {
	if path == "-" && c.env.Stdin != nil {
		return io.NopCloser(c.env.Stdin), nil
	}
	if _, brought := c.env.Files[path]; path == "-" || brought || c.env.Remote {
		data, err := c.file(field, path)
		return io.NopCloser(bytes.NewReader(data)), err
	}
	f, err := c.openFile(path)
	if err != nil {
		return nil, fileError(field, path, err)
	}
	return f, nil
}
