package cell

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"swarmdeck/engine/core"
)

// Directories of the system that every walled run may read. What is a
// symbolic link stays one.
var system = [...]string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu", "/sys/devices/system/cpu", "/var/lib/ca-certificates",
}

// Of these a reader needs no more.
var readers = [...]string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix", "/gnu",
	"/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime", "/etc/fonts", "/etc/ssl/certs", "/etc/ssl/openssl.cnf",
}

// What of /proc is about the machine, and not about its processes.
var machine = [...]string{"cpuinfo", "meminfo", "stat", "loadavg", "uptime", "version", "filesystems", "devices", "swaps", "sys"}

// systemOf is what a profile reads of the system.
func systemOf(p Profile) []string {
	if p == Reader {
		return readers[:]
	}
	return system[:]
}

// workName is a directory in a home's .cache for what overlays put there while
// they work, which the run does not see.
const workName = "swarmdeck-overlay"

// ownHome is where a run has its home that has none which is kept.
const ownHome = "/home/agent"

// order says what an init is to do, with the files that go with it: the order
// itself first.
func (s *Supervisor) order(m mode, path string, spec Spec, p *Process) (o order, files files, err error) {
	o = order{
		Path: path, Argv: spec.Argv, Dir: spec.Dir, Profile: spec.Wall.Profile, Run: p.run,
		Spaces: m != bare, User: spec.User, Limits: spec.Limits, Unscoped: s.without(layerSignals), Grace: s.grace, Tty: spec.Terminal != nil,
	}
	if m == bare {
		o.lacks = append(o.lacks, layerSpaces)
		if p.group == nil { // which would hold the run together in their place
			o.lacks = append(o.lacks, layerCgroup)
		}
	}
	p.laid.dirs = nil
	env := environ(spec.Env, p.run)
	files = append(files, nil)
	named := func(f *os.File) int {
		files = append(files, f)
		return firstFile + len(files) - 2
	}
	if spec.Wall.walled() {
		if m == bare {
			err = s.narrowed(&o, spec, env, p)
		} else {
			o.Network, o.Ports, o.Ways = true, spec.Wall.Reach, s.opt.Way != nil && spec.Wall.Profile == Worker
			if err = s.furnished(&o, m, spec, env, named, p); err == nil && o.Ways && spec.Wall.Inspect {
				err = p.trust(&o, env)
			}
		}
		if err != nil {
			return o, nil, err
		}
	} else if spec.Wall.Home != "" {
		env["HOME"] = cmp.Or(spec.Env["HOME"], spec.Wall.Home)
	}
	if p.group != nil {
		o.Cgroup = named(s.cgroups.procs)
	}
	if o.Keep, err = s.keeps(spec, p, named); err != nil {
		return o, nil, err
	}
	p.keeps = o.Keep != nil
	o.Env = list(env)
	data, err := json.Marshal(o)
	if err != nil {
		return o, nil, fmt.Errorf("encode the order: %w", err)
	}
	files[0], err = sealed(data)
	return o, files, err
}

// tree is a part of the machine's files that a run is given.
type tree struct {
	path  string // without symbolic links
	as    string // where it is seen
	write bool
	must  bool
	pin   bool // it must be what is there when the command starts
	cache bool // what is written there is kept apart
	plain bool // of cache: it is of use to be read alone
	real  bool // the path leads through no link
	map_  int
}

// trees are those of a run, outer ones first, each once: what may be written wins.
func (s *Supervisor) trees(spec Spec, path string) []tree {
	var all []tree
	add := func(path string, write, must bool) {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			if must {
				all = append(all, tree{path: path, as: path, write: write, must: true})
			}
			return
		}
		for _, as := range slices.Compact([]string{real, path}) {
			if as != "/" && !isSystem(as, write) {
				all = append(all, tree{path: real, as: as, write: write, must: must && as == real, real: true}) // by its own name at least
			}
		}
	}
	for _, p := range s.programs(path, spec) {
		add(p, false, false)
	}
	for p, write := range spec.Wall.told(spec.Argv[1:]) {
		if !slices.ContainsFunc(s.hidden(spec.Dir, spec.Wall.Hide), func(h string) bool { return within(p, h) || within(resolved(p), h) }) {
			add(p, write, false)
		}
	}
	for _, p := range spec.Wall.Read {
		add(p, false, true)
	}
	for _, p := range spec.Wall.Write {
		add(p, true, true)
	}
	if spec.Wall.Home != "" {
		add(spec.Wall.Home, true, true)
	}
	add(spec.Dir, spec.Wall.Profile == Worker, true)
	for _, p := range spec.Pinned {
		all = append(all, tree{path: p.Copy, as: p.Path, must: true, pin: true})
	}
	if spec.Wall.Tmp != "" {
		all = append(all, tree{path: spec.Wall.Tmp, as: "/tmp", write: true, must: true})
	}
	core.Sort(all, func(a, b tree) int {
		switch {
		case a.as != b.as:
			return cmp.Compare(a.as, b.as)
		case a.pin != b.pin:
			return map[bool]int{true: -1, false: 1}[a.pin]
		case a.write != b.write && a.write:
			return -1
		case a.write != b.write:
			return 1
		}
		return 0
	})
	return slices.CompactFunc(all, func(a, b tree) bool { return a.as == b.as })
}

// held are the directories on the way to what is hidden or guarded in a tree, each
// mounted over itself. One that the run renames would show what it holds to the next
// run, from which it is hidden by name; a mount point can't be renamed.
func (t tree) held(hidden []string) (all []place) {
	if !t.write {
		return nil
	}
	var way []string
	for _, h := range hidden {
		if !within(h, t.as) {
			continue
		}
		for dir := filepath.Dir(h); dir != t.as && within(dir, t.as); dir = filepath.Dir(dir) {
			way = append(way, dir)
		}
	}
	slices.Sort(way)
	for _, dir := range slices.Compact(way) {
		all = append(all, place{Kind: bind, To: dir, From: t.path + strings.TrimPrefix(dir, t.as), Write: true, Map: t.map_, Real: true})
	}
	return all
}

// isSystem reports what is there to be read anyway.
func isSystem(path string, write bool) bool {
	return !write && slices.ContainsFunc(system[:], func(dir string) bool { return within(path, dir) })
}

func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// furnished plans the file system of a walled run.
func (s *Supervisor) furnished(o *order, m mode, spec Spec, env map[string]string, named func(*os.File) int, p *Process) error {
	trees := append(s.trees(spec, o.Path), s.cached(spec)...)
	uid := uint32(os.Geteuid())
	if m == asRoot {
		if err := s.disguise(o, spec, trees, named); err != nil {
			return err
		}
		uid = 0
		if o.User != nil {
			uid = o.User.UID
		}
	}
	for _, path := range systemOf(o.Profile) {
		if target, err := os.Readlink(path); err == nil {
			o.Places = append(o.Places, place{Kind: link, To: path, From: target})
		} else {
			o.Places = append(o.Places, place{Kind: bind, To: path, From: path})
		}
	}
	o.Places = append(o.Places,
		place{Kind: dev, To: "/dev", Must: true},
		place{Kind: procs, To: "/proc", Must: true},
		place{Kind: tmpfs, To: "/tmp", Mode: 0o1777, UID: uid, Must: true}, // unless it has a directory for it
		place{Kind: tmpfs, To: "/var/tmp", Mode: 0o1777, UID: uid, Must: true},
	)
	if o.Profile == Reader && spec.Wall.Named || o.Profile != Reader && o.User != nil && o.User.UID == s.cellUID() { // programs ask who they are
		all := []string{"/etc/passwd", "/etc/group"}
		if o.Profile == Reader { // who else there is it need not know
			all = []string{"", ""}
		}
		o.Places = append(o.Places,
			place{Kind: text, To: "/etc/passwd", From: withLine(all[0], fmt.Sprintf("agent:x:%d:%d:agent:%s:/bin/sh", uid, uid, cmp.Or(spec.Wall.Home, ownHome)))},
			place{Kind: text, To: "/etc/group", From: withLine(all[1], fmt.Sprintf("agent:x:%d:", uid))},
		)
	}
	if o.User == nil && uid == 0 { // it is root still, if without its rights
		for _, path := range closed("/etc") {
			o.Places = append(o.Places, place{Kind: hide, To: path, Must: true})
		}
	}
	o.Write = []string{"/tmp", "/var/tmp", "/dev", "/proc"}
	home := cmp.Or(spec.Env["HOME"], spec.Wall.Home)
	if home == "" {
		home = ownHome
		o.Places = append(o.Places, place{Kind: tmpfs, To: home, Mode: 0o700, UID: uid, Must: true})
		o.Write = append(o.Write, home)
	}
	env["HOME"] = home
	if spec.Env["TMPDIR"] == "" {
		delete(env, "TMPDIR")
	}
	if o.Ways {
		proxied(env)
	}
	hidden, own := s.hidden(spec.Dir, spec.Wall.Hide), s.own()
	for _, t := range trees {
		if t.cache {
			c := place{Kind: overlay, To: t.as, From: t.path, Map: t.map_, UID: uid, Plain: t.plain}
			if spec.Wall.Home != "" {
				c.Work = filepath.Join(spec.Wall.Home, ".cache", workName, strings.ReplaceAll(strings.TrimPrefix(t.as, spec.Wall.Home+"/"), "/", "_"))
			}
			o.Places = append(o.Places, c)
			continue
		}
		o.Places = append(o.Places, place{Kind: bind, To: t.as, From: t.path, Write: t.write, Map: t.map_, Must: t.must, Pin: t.pin, Real: t.real})
		var guards []string
		if s.shares(spec, t, own) {
			guards = t.guards(spec.Wall.Guard)
			p.laid.add(t.path, spec.Wall.Guard)
		}
		o.Places = append(o.Places, t.held(slices.Concat(hidden, guards))...)
		for _, g := range guards {
			o.Places = append(o.Places, place{Kind: bind, To: g, From: t.path + strings.TrimPrefix(g, t.as), Map: t.map_, Must: true, Real: true})
		}
		for _, h := range hidden {
			if h != t.as && within(h, t.as) {
				o.Places = append(o.Places, place{Kind: hide, To: h, Must: true})
			}
		}
		if t.write {
			o.Write = append(o.Write, t.as)
		}
	}
	if spec.Wall.Home != "" {
		o.Places = append(o.Places, place{Kind: hide, To: filepath.Join(spec.Wall.Home, ".cache", workName)})
	}
	o.Read = []string{"/"}
	if o.Profile == Reader { // not even what it shows of processes
		o.Read, o.Write = append(slices.Clone(readers[:]), "/dev"), o.Write[:3]
		if spec.Wall.Named {
			o.Read = append(o.Read, "/etc/passwd", "/etc/group")
		}
		if home == ownHome {
			o.Write = append(o.Write, home)
		}
		for _, t := range trees {
			if t.write {
				o.Write = append(o.Write, t.as)
			} else {
				o.Read = append(o.Read, t.as)
			}
		}
	}
	return nil
}

// narrowed plans a walled run where there are no name spaces: Landlock alone
// holds it, which can't hide what lies within what it shows.
func (s *Supervisor) narrowed(o *order, spec Spec, env map[string]string, p *Process) error {
	if o.User == nil && os.Geteuid() == 0 && o.Profile != Reader {
		// Root's own files are the system's, whose modes and keys are root's to change.
		owner, err := ownerOf(spec.Dir)
		if err != nil {
			return BadDir{err}
		}
		if owner == 0 {
			return fmt.Errorf("%w: without name spaces a %s of root needs a directory, or a user, that is not root's", ErrNoWall, spec.Wall.Profile)
		}
		o.User = &User{UID: owner, GID: owner}
		if kept, err := ownerOf(spec.Wall.Home); err == nil && kept != owner { // which it could not enter
			spec.Wall.Home = ""
		}
	}
	trees := s.trees(spec, o.Path)
	for _, h := range s.hidden(spec.Dir, spec.Wall.Hide) {
		for _, t := range trees {
			if _, err := os.Lstat(h); err == nil && h != t.path && within(h, t.path) {
				return fmt.Errorf("%s lies in %s and can't be hidden from a %s without name spaces: %w", h, t.path, spec.Wall.Profile, os.ErrPermission)
			}
		}
	}
	if err := p.scratch(o.User); err != nil {
		return err
	}
	home, tmp := filepath.Join(p.own, "home"), filepath.Join(p.own, "tmp")
	env["HOME"] = cmp.Or(spec.Env["HOME"], spec.Wall.Home, home)
	env["TMPDIR"] = cmp.Or(spec.Env["TMPDIR"], tmp)
	o.Read = append(slices.Clone(systemOf(o.Profile)), "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
	if o.Profile != Reader {
		for _, name := range machine {
			o.Read = append(o.Read, "/proc/"+name)
		}
	}
	o.Write = []string{home, tmp, "/dev/null", "/dev/tty"}
	own := s.own()
	for _, t := range trees {
		if s.shares(spec, t, own) { // Landlock makes no exception below what may be written
			p.laid.add(t.path, spec.Wall.Guard)
		}
		if t.write {
			o.Write = append(o.Write, t.path)
		} else {
			o.Read = append(o.Read, t.path)
		}
	}
	return nil
}

// scratch makes the directory of a run that has no other place of its own.
func (p *Process) scratch(user *User) (err error) {
	if p.own, err = os.MkdirTemp("", p.sup.scratchName()); err != nil {
		return fmt.Errorf("make a place for the run: %w", err)
	}
	p.own = resolved(p.own)
	for _, dir := range []string{"home", "tmp", ""} {
		dir = filepath.Join(p.own, dir)
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("make a place for the run: %w", err)
		}
		if user != nil {
			if err := os.Chown(dir, int(user.UID), int(user.GID)); err != nil {
				return fmt.Errorf("make a place for the run: %w", err)
			}
		}
	}
	return nil
}

// proxied tells programs where the way out is.
func proxied(env map[string]string) {
	http, socks := fmt.Sprintf("http://127.0.0.1:%d", PortHTTP), fmt.Sprintf("socks5h://127.0.0.1:%d", PortSOCKS)
	for name, v := range map[string]string{
		"http_proxy": http, "https_proxy": http, "all_proxy": socks, "no_proxy": "localhost,127.0.0.1,::1", "NODE_USE_ENV_PROXY": "1",
	} {
		for _, name := range []string{name, strings.ToUpper(name)} {
			if _, given := env[name]; !given {
				env[name] = v
			}
		}
	}
}
