package acp

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/cell/home"
	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

// place is where an agent runs, worked out from its record.
type place struct {
	settings
	keeper.Place
	there  *there // the host that it runs on; nil for this machine
	memory string // file of what is remembered of its conversation
	key    string // agents with the same key share a process
	born   string // when the agent was made
}

// elsewhere are the options of an agent on a host.
const elsewhere = "mode, model, fs, terminal, auth, idle_stop, fresh, usage and record_models"

func (r *Runtime) placeOf(a fleet.Agent) (p place, err error) {
	if p.settings, err = readSettings(a.Options); err != nil {
		return p, err
	}
	at, err := r.Place(a, p.Choices, p.RecordModels, elsewhere)
	if p.Place = *at; err != nil {
		return p, err
	}
	own := home.Of(r.State, a)
	p.There = keeper.Hosted{Whole: true}
	p.memory, p.key, p.born = filepath.Join(own, "session.json"), p.Spec.Run, a.CreatedAt.UTC().Format(time.RFC3339Nano)
	if a.Host != "" {
		for option, given := range map[string]bool{"user": p.User != "", "shared": p.Shared} {
			if given {
				return p, keeper.NotThere(option, elsewhere)
			}
		}
		p.there = &there{Place: p.Place}
		return p, nil
	}
	if p.Spec.User, err = p.account(); err != nil {
		return p, err
	}
	p.Spec.Wall.Read = slices.Clone(r.Read)
	if p.Shared {
		if own, err = p.share(a); err != nil {
			return p, err
		}
	}
	if named, given := a.Env["HOME"]; given {
		if filepath.IsAbs(named) {
			p.Spec.Wall.Write = append(p.Spec.Wall.Write, named)
		}
		return p, nil
	}
	p.Home = &home.Home{Options: p.Options, Path: cmp.Or(p.Options.Home, filepath.Join(own, "home")), User: p.Spec.User, Own: p.Own}
	p.Spec.Wall.Home = p.Home.Path
	if !p.Shared {
		p.Home.Tmp = filepath.Join(own, "tmp")
		p.Spec.Wall.Tmp = p.Home.Tmp
	}
	vars := map[string]string{"HOME": p.Home.Path}
	maps.Copy(vars, a.Env)
	p.Spec.Env = vars
	return p, nil
}

// share makes the process one that all agents have to whom the same holds, and gives the
// directory of what is kept for them.
func (p *place) share(a fleet.Agent) (own string, err error) {
	if name := p.Spec.Argv[0]; strings.Contains(name, "/") && !filepath.IsAbs(name) {
		// The process starts in a directory of nobody.
		p.Spec.Argv = append([]string{filepath.Join(p.Spec.Dir, name)}, p.Spec.Argv[1:]...)
	}
	where := p.Spec.Dir // a process behind a wall sees one directory
	if p.Spec.Wall.Profile == cell.Open {
		where = ""
	}
	same, err := core.Digest([]any{where, a.TenantID, p.Spec.Argv, a.Env, p.Options.Home, p.Skeleton, p.User, p.Auth, p.FS, p.Terminal, a.Profile, p.Places, p.Inspect, a.Role, p.RecordModels})
	if err != nil {
		return "", fmt.Errorf("name the shared process: %w", err)
	}
	sum := sha256.Sum256([]byte(same))
	own = filepath.Join(p.State, a.TenantID, "shared-"+hex.EncodeToString(sum[:6]))
	p.key = strings.Join([]string{"agents", a.TenantID, filepath.Base(own)}, ":")
	p.Spec.Run, p.Spec.Whose.Agent = p.key, ""
	return own, nil
}

// reachable reports directories that the agent's user can't enter: the agent
// itself would only say that something is missing.
func (p place) reachable() error {
	u := p.Spec.User
	if u == nil || p.Home == nil {
		return nil
	}
	for _, dir := range []string{p.Home.Path, p.Spec.Dir} {
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
