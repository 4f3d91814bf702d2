package acp

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/cell/home"
	"swarmdeck/drivers/cell/pin"
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
	pins   *pin.Keeper          // of what its commands are bound to
	there  *there               // the host that it runs on; nil for this machine
	home   string               // its HOME, "" when its environment names one
	memory string               // file of what is remembered of its conversation
	key    string               // agents with the same key share a process
	born   string               // when the agent was made
	models modelproxy.Upstreams // that are recorded
	lines  *modelproxy.Lines    // to those; nil before it is open, and for none
}

func (r *Runtime) place(tenant, name, role, host string, command []string, env map[string]string, dir string, options core.Raw, profile string) (place, error) {
	p := place{tenant: tenant, sup: r.sup, own: r.opt.Own, pins: r.opt.Pins}
	var err error
	if p.settings, err = readSettings(options); err != nil {
		return p, err
	}
	if host != "" {
		return r.placeThere(p, host, fleet.Create{Name: name, Role: role, Command: command, Env: env, Dir: dir, Profile: profile})
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
		same, err := core.Digest([]any{where, tenant, command, env, p.Home, p.Skeleton, p.User, p.Auth, p.FS, p.Terminal, profile, p.Places, p.Inspect, role, p.RecordModels})
		if err != nil {
			return p, fmt.Errorf("name the shared process: %w", err)
		}
		sum := sha256.Sum256([]byte(same))
		own = filepath.Join(r.opt.State, tenant, "shared-"+hex.EncodeToString(sum[:6]))
		p.key = strings.Join([]string{"agents", tenant, filepath.Base(own)}, ":")
		p.spec.Run, p.spec.Whose.Agent = p.key, ""
	}
	if named, given := env["HOME"]; given {
		if err := p.WithoutHome(named); err != nil {
			return p, err
		}
		if filepath.IsAbs(named) {
			p.spec.Wall.Write = append(p.spec.Wall.Write, named)
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
	p, err := r.place(a.TenantID, a.Name, a.Role, a.Host, a.Command, a.Env, a.Dir, a.Options, a.Profile)
	p.born = a.CreatedAt.UTC().Format(time.RFC3339Nano)
	return p, err
}

// house is the HOME.
func (p place) house() *home.Home {
	return &home.Home{Options: p.Options, Path: p.home, Tmp: p.spec.Wall.Tmp, User: p.spec.User, Own: p.own}
}

// furnish makes the HOME and fills it.
func (p place) furnish() error {
	if p.home == "" {
		return nil
	}
	h := p.house()
	if err := h.Furnish(); err != nil {
		return err
	}
	return p.reachable()
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
