package tree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"swarmdeck/drivers/git"
	"swarmdeck/engine/tree"
)

// conversion is how the git of a source's operator converts between what it keeps and the
// files of a work tree, beside the attributes that lie among these: the ends of lines and
// the encoding of a text. The trees of agents are laid out and taken by it too, so that
// what is taken over is what git would have kept. No program is part of it.
type conversion struct {
	Settings   [][2]string `json:"settings,omitempty"` // of endings, the names and the values
	Attributes string      `json:"attributes,omitempty"`
}

// maxAttributes bounds a repository's own file of attributes, in bytes.
const maxAttributes = 1 << 20

// endings are the settings by which git writes the ends of lines, with what they may be,
// of which the first stands where nobody has said.
func endings() map[string][]string {
	return map[string][]string{"autocrlf": {"false", "true", "input"}, "eol": {"native", "lf", "crlf"}}
}

// valid reports settings that are all known.
func (c conversion) valid() bool {
	return !slices.ContainsFunc(c.Settings, func(s [2]string) bool { return !slices.Contains(endings()[s[0]], s[1]) })
}

// config is what git reads of it.
func (c conversion) config() string {
	text := "[core]\n"
	for _, s := range c.Settings {
		text += fmt.Sprintf("\t%s = %s\n", s[0], s[1])
	}
	return text
}

// conversionOf reads that of a source, or of its operator where the source says nothing.
// Nothing that its configuration includes is read.
func conversionOf(ctx context.Context, r git.Repository, w git.Worktree) (c conversion, err error) {
	calls := []git.Call{{Own: true, Args: []string{"--system"}}, {Own: true, Args: []string{"--global"}}} // the last to say something is heard
	for _, file := range []string{filepath.Join(w.Common, "config"), filepath.Join(w.Dir, "config.worktree")} {
		if _, err := os.Stat(file); err == nil {
			calls = append(calls, git.Call{Read: []string{file}, Args: []string{"--file", file}})
		}
	}
	said := map[string]string{}
	for _, call := range calls {
		call.Args = slices.Concat([]string{"config"}, call.Args, []string{"--no-includes", "--get-regexp", `^core\.(autocrlf|eol)$`})
		out, _ := r.Run(ctx, call) // an error is that it says nothing
		for line := range strings.Lines(strings.ToLower(string(out))) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			switch value {
			case "yes", "on", "1":
				value = "true"
			}
			said[strings.TrimPrefix(name, "core.")] = value
		}
	}
	for _, name := range []string{"autocrlf", "eol"} {
		value := said[name]
		if allowed := endings()[name]; !slices.Contains(allowed, value) {
			value = allowed[0]
		}
		c.Settings = append(c.Settings, [2]string{name, value})
	}
	root, err := w.Root()
	if err != nil {
		return c, err
	}
	defer root.Close()
	attributes, err := root.Read("info/attributes", maxAttributes)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	c.Attributes = string(attributes)
	return c, err
}

// written tells when the files were written that a conversion is read from: to ask git each
// time would make every look at a tree slow.
func written(w git.Worktree) (stamp string) {
	home, _ := os.UserHomeDir()
	config, _ := os.UserConfigDir()
	for _, file := range []string{
		filepath.Join(w.Common, "config"), filepath.Join(w.Dir, "config.worktree"), filepath.Join(w.Common, "info", "attributes"),
		os.Getenv("GIT_CONFIG_GLOBAL"), filepath.Join(home, ".gitconfig"), filepath.Join(config, "git", "config"), "/etc/gitconfig",
	} {
		if info, err := os.Stat(file); err == nil {
			stamp += fmt.Sprintln(file, info.Size(), info.ModTime().UnixNano())
		}
	}
	return stamp
}

// converted is a conversion that is in force, and when what it is read from was written.
type converted struct {
	conversion
	stamp string
}

// converting has the work trees of a repository of ours go by the conversion of its source.
// Who calls it holds the lock.
func (d *Driver) converting(ctx context.Context, r *git.Repository, t tree.Tree, w git.Worktree) error {
	dir := filepath.Join(r.Dir, "source.git")
	now := converted{stamp: written(w)}
	if was, there := d.converts[r.Dir]; !there || was.stamp != now.stamp {
		var err error
		if now.conversion, err = conversionOf(ctx, *r, w); err != nil {
			return err
		}
		for _, below := range []string{"refs", "info"} {
			if err := os.MkdirAll(filepath.Join(dir, below), 0o700); err != nil {
				return err
			}
		}
		config := "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = " + format(t) + "\n" + now.config()
		for _, f := range [][2]string{{"HEAD", "ref: refs/heads/none\n"}, {"config", config}, {"info/attributes", now.Attributes}} {
			if err := renewed(filepath.Join(dir, f[0]), f[1]); err != nil {
				return err
			}
		}
		d.converts[r.Dir] = now
	}
	r.Converts = dir
	return nil
}

// renewed writes a small file of ours that others may be reading.
func renewed(path, text string) error {
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// conversion is the one by which the trees of a repository go.
func (d *Driver) conversion(r git.Repository) conversion {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.converts[r.Dir].conversion
}
