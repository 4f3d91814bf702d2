package acp

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/modelproxy"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/safeopen"
)

// place is where an agent runs, worked out from its record.
type place struct {
	settings
	tenant string
	spec   cell.Spec
	sup    *cell.Supervisor
	own    *safeopen.Own        // files that are opened for no agent
	home   string               // its HOME, "" when its environment names one
	memory string               // file of what is remembered of its conversation
	key    string               // agents with the same key share a process
	born   string               // when the agent was made
	models modelproxy.Upstreams // that are recorded
	lines  *modelproxy.Lines    // to those; nil before it is open, and for none
}

func (r *Runtime) place(tenant, name, role string, command []string, env map[string]string, dir string, options core.Raw, profile string) (place, error) {
	p := place{tenant: tenant, sup: r.sup, own: r.opt.Own}
	var err error
	if p.settings, err = readSettings(options); err != nil {
		return p, err
	}
	if p.spec, err = cell.NewSpec(command, env, dir, r.opt.Dir); err != nil {
		return p, err
	}
	if p.spec.User, err = p.account(); err != nil {
		return p, err
	}
	p.spec.Limits = r.opt.Limits
	kept, err := cell.ParseProfile("profile", profile)
	if err != nil {
		return p, err
	}
	if err := r.sup.CheckPlaces("options.", p.Places); err != nil {
		return p, err
	}
	if err := cell.CheckInspect("options.inspect", kept, p.Inspect); err != nil {
		return p, err
	}
	p.spec.Wall = cell.Wall{Profile: kept, Told: true, Inspect: p.Inspect, Read: slices.Clone(r.opt.Read), More: p.Places}
	if p.models, err = modelproxy.Read(p.RecordModels, env); err != nil {
		return p, err
	}
	own := filepath.Join(r.opt.State, tenant, name)
	p.memory = filepath.Join(own, "session.json")
	p.spec.Run = strings.Join([]string{"agent", tenant, name}, ":")
	p.spec.Whose = cell.Whose{Tenant: tenant, Agent: name, Role: role}
	p.key = p.spec.Run
	if p.Shared {
		if name := p.spec.Argv[0]; strings.Contains(name, "/") && !filepath.IsAbs(name) {
			// The process starts in a directory of nobody.
			p.spec.Argv = append([]string{filepath.Join(p.spec.Dir, name)}, p.spec.Argv[1:]...)
			command = p.spec.Argv
		}
		where := p.spec.Dir // a process behind a wall sees one directory
		if kept == cell.Open {
			where = ""
		}
		same, err := core.Digest([]any{where, tenant, command, env, p.Home, p.Skeleton, p.User, p.Auth, p.FS, p.Terminal, profile, p.Places, p.Inspect, role})
		if err != nil {
			return p, fmt.Errorf("name the shared process: %w", err)
		}
		sum := sha256.Sum256([]byte(same))
		own = filepath.Join(r.opt.State, tenant, "shared-"+hex.EncodeToString(sum[:6]))
		p.key = strings.Join([]string{"agents", tenant, filepath.Base(own)}, ":")
		p.spec.Run, p.spec.Whose.Agent = p.key, ""
	}
	if home, given := env["HOME"]; given {
		if len(p.Login) > 0 {
			return p, core.Invalid("env.HOME", home, "none together with the option login, which goes into a home of its own")
		}
		if filepath.IsAbs(home) {
			p.spec.Wall.Write = append(p.spec.Wall.Write, home)
		}
		return p, nil
	}
	p.home = p.Home
	if p.home == "" {
		p.home = filepath.Join(own, "home")
	}
	p.spec.Wall.Home = p.home
	if !p.Shared {
		p.spec.Wall.Tmp = filepath.Join(own, "tmp")
	}
	vars := map[string]string{"HOME": p.home}
	for k, v := range env {
		vars[k] = v
	}
	p.spec.Env = vars
	return p, nil
}

func (r *Runtime) placeOf(a fleet.Agent) (place, error) {
	p, err := r.place(a.TenantID, a.Name, a.Role, a.Command, a.Env, a.Dir, a.Options, a.Profile)
	p.born = a.CreatedAt.UTC().Format(time.RFC3339Nano)
	return p, err
}

// furnish makes the HOME and fills it from the skeleton.
func (p place) furnish() error {
	if p.home == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(p.home), 0o711); err != nil {
		return fmt.Errorf("make the agent's home: %w", err)
	}
	if err := os.Mkdir(p.home, 0o700); err == nil {
		p.give(p.home, os.Lchown)
	} else if !os.IsExist(err) {
		return fmt.Errorf("make the agent's home: %w", err)
	}
	if tmp := p.spec.Wall.Tmp; tmp != "" { // its commands share it, and nothing of it lasts
		if err := os.RemoveAll(tmp); err != nil {
			return fmt.Errorf("empty the agent's temporary files: %w", err)
		}
		if err := os.MkdirAll(filepath.Dir(tmp), 0o711); err != nil {
			return fmt.Errorf("make a place for the agent's temporary files: %w", err)
		}
		if err := os.Mkdir(tmp, 0o700); err != nil {
			return fmt.Errorf("make a place for the agent's temporary files: %w", err)
		}
		p.give(tmp, os.Lchown)
	}
	if p.Skeleton != "" {
		if err := p.copySkeleton(); err != nil {
			return fmt.Errorf("fill the agent's home from %s: %w", p.Skeleton, err)
		}
	}
	if err := p.copyLogin(); err != nil {
		return fmt.Errorf("copy the agent's login: %w", err)
	}
	return p.reachable()
}

// give makes the agent's user the owner; a failure shows when it needs that.
func (p place) give(path string, own func(path string, uid, gid int) error) {
	if u := p.spec.User; u != nil {
		_ = own(path, int(u.UID), int(u.GID))
	}
}

// Bounds of a skeleton: it holds settings, no data.
const (
	maxSkeletonFiles = 1000
	maxSkeletonBytes = 64 << 20
)

// copySkeleton fills a home in which the agent may have left links: none leads
// out of it, since the engine may have more rights than the agent.
func (p place) copySkeleton() error {
	home, err := os.OpenRoot(p.home)
	if err != nil {
		return err
	}
	defer home.Close()
	return p.copyTree(home, p.Skeleton, ".", false)
}

// copyTree copies what is at a path to a place in a home: regular files that
// are not there, or with renew are older there.
func (p place) copyTree(home *os.Root, from, to string, renew bool) error {
	files, bytes := 0, int64(0)
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if rel = filepath.Join(to, rel); err != nil || rel == "." {
			return err
		}
		if d.IsDir() {
			if err := home.Mkdir(rel, 0o700); err == nil {
				p.give(rel, home.Lchown)
			} else if !os.IsExist(err) {
				return err
			}
			return nil
		}
		info, err := d.Info()
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		files++
		bytes += info.Size()
		if files > maxSkeletonFiles || bytes > maxSkeletonBytes {
			return fmt.Errorf("more than %d files or %d MiB", maxSkeletonFiles, maxSkeletonBytes>>20)
		}
		if there, err := home.Lstat(rel); renew && err == nil && there.Mode().IsRegular() && there.ModTime().Before(info.ModTime()) {
			if err := home.Remove(rel); err != nil {
				return err
			}
		}
		return p.copyFile(home, path, rel, info.Mode().Perm()|0o600)
	})
}

// copyFile copies one file unless it is there.
func (p place) copyFile(home *os.Root, from, to string, perm fs.FileMode) error {
	in, err := p.own.File(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := home.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if os.IsExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		_ = home.Remove(to) // a half file would count as there
		return err
	}
	p.give(to, home.Lchown)
	return nil
}

// reachable reports directories that the agent's user can't enter: the agent
// itself would only say that something is missing.
func (p place) reachable() error {
	u := p.spec.User
	if u == nil {
		return nil
	}
	for _, dir := range []string{p.home, p.spec.Dir} {
		for at := dir; ; at = filepath.Dir(at) {
			info, err := os.Stat(at)
			if err != nil {
				return fmt.Errorf("look at %s: %w", at, err)
			}
			need := fs.FileMode(0o001)
			if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid == u.UID {
				need = 0o100
			} else if ok && st.Gid == u.GID {
				need = 0o010
			}
			if info.Mode()&need == 0 {
				return core.Errorf(core.InvalidInput, "user %s can't enter %s, so it can't run in %s", p.User, at, dir).With("field", "options.user")
			}
			if at == filepath.Dir(at) {
				break
			}
		}
	}
	return nil
}
