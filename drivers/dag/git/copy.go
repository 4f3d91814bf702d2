package git

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"swarmdeck/drivers/git"
	"swarmdeck/engine/core"
	"swarmdeck/engine/safeopen"
)

// Bounds of the objects of a repository that is read.
const (
	maxLoose = 100_000 // in one directory of 256
	maxPacks = 10_000
	maxBytes = 16 << 30
)

// copyOf copies the objects of the repository at src, or in its .git, into a
// new one at dest, and returns the tips of its branches. No link is followed,
// and nothing else of the repository is looked at: neither its configuration
// nor what says that objects lie elsewhere.
func copyOf(ctx context.Context, cells git.Git, src, dest string) (tips map[string]string, err error) {
	var nobody *safeopen.Own // who names a place to import from has checked it
	root, err := nobody.Root(src)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	prefix := ""
	if _, err := root.List(".git/objects", maxPacks); err == nil {
		prefix = ".git/"
	} else if _, err := root.List("objects", maxPacks); err != nil {
		return nil, core.Errorf(core.InvalidInput, "repository: %s is none: it has no objects", src).With("field", "repository")
	}
	if tips, err = git.Refs(root, prefix, "refs/heads/"); err != nil {
		return nil, err
	}
	tip := tips[recordBranch]
	if tip == "" {
		return nil, core.Errorf(core.InvalidInput, "repository: has no branch record; is it a record that was exported?").With("field", "repository")
	}
	format := map[int]string{40: "sha1", 64: "sha256"}[len(tip)]
	if err := os.Mkdir(dest, 0o700); err != nil {
		return nil, err
	}
	init := git.Call{Write: []string{dest}, Args: []string{"init", "--quiet", "--bare", "--template=", "--object-format=" + format, dest}}
	if _, err := cells.Run(ctx, init); err != nil {
		return nil, err
	}
	c := &copying{ctx: ctx, root: root, left: maxBytes}
	if err := c.objects(prefix+"objects", filepath.Join(dest, "objects")); err != nil {
		return nil, err
	}
	for _, pack := range c.packs {
		// Made anew from the pack: an index that is wrong would be believed.
		if _, err := cells.Run(ctx, git.Call{GitDir: dest, Args: []string{"index-pack", pack}}); err != nil {
			return nil, core.Errorf(core.InvalidInput, "repository: %v", err).With("field", "repository")
		}
	}
	return tips, nil
}

// copying is a copy on its way.
type copying struct {
	ctx   context.Context
	root  *safeopen.Root
	left  int64
	packs []string
}

func (c *copying) objects(from, to string) error {
	dirs, err := c.root.List(from, maxPacks)
	if err != nil {
		return err
	}
	for _, d := range dirs {
		name := d.Name()
		wanted, most := func(file string) bool { return git.IsHash(name + file) }, maxLoose
		if name == "pack" {
			wanted, most = func(file string) bool { return strings.HasPrefix(file, "pack-") && strings.HasSuffix(file, ".pack") }, maxPacks
		} else if len(name) != 2 || strings.Trim(name, "0123456789abcdef") != "" {
			continue
		}
		if !d.IsDir() {
			continue
		}
		if err := c.dir(from+"/"+name, filepath.Join(to, name), most, wanted); err != nil {
			return err
		}
	}
	return nil
}

func (c *copying) dir(from, to string, most int, wanted func(string) bool) error {
	files, err := c.root.List(from, 4*most) // a pack has files beside it
	if err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	for _, f := range files {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		if !wanted(f.Name()) {
			continue
		}
		at := filepath.Join(to, f.Name())
		if err := c.file(from+"/"+f.Name(), at); err != nil {
			return err
		}
		if strings.HasSuffix(at, ".pack") {
			c.packs = append(c.packs, at)
		}
	}
	return nil
}

func (c *copying) file(from, to string) error {
	in, err := c.root.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(out, io.LimitReader(in, c.left+1))
	if c.left -= n; err == nil && c.left < 0 {
		err = core.Errorf(core.InvalidInput, "repository: its objects take more than %d bytes", int64(maxBytes)).With("field", "repository")
	}
	return errors.Join(err, out.Close())
}
