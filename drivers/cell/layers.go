package cell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Layer is a part of the wall, and whether it holds a run here.
type Layer struct {
	Name   string
	OK     bool
	Needed bool   // the profile promises something that only this layer holds
	Detail string // what is there, or why it is not
	Fix    string // how to get it; "" for nothing to do
}

// tryPatience is how long one try of a cell may take.
const tryPatience = 10 * time.Second

// Layers starts a command that does nothing in a directory, as a run of a
// profile, and tells which layers hold it. Nothing of it is left. An open run
// has fewer layers than others, and none that holds it back. Where none can be started, no
// more is told than why.
func (s *Supervisor) Layers(ctx context.Context, profile Profile, dir string) []Layer {
	ctx, cancel := context.WithTimeout(ctx, tryPatience)
	defer cancel()
	t := s.try(ctx, profile, dir)
	run := Layer{Name: "run", OK: t.err == nil, Needed: true, Detail: "a command was started, paused, resumed and ended"}
	if t.err != nil {
		run.Detail = "none can be started: " + t.err.Error()
		if profile != Open && errors.Is(t.err, ErrNoWall) {
			run.Fix = "name spaces; or Landlock, seccomp and a work directory that is not root's"
		}
	}
	walled := profile != Open
	all := []Layer{run}
	if t.err == nil || errors.Is(t.err, ErrNoWall) {
		all = append(all, t.nameSpaces(walled))
	}
	if t.err != nil { // of what was to hold it nothing is known
		return all
	}
	if walled {
		if os.Geteuid() == 0 {
			all = append(all, s.idmapped(dir))
		}
		all = append(all, t.landlock(), t.seccomp(), t.noNewPrivs())
	}
	return append(all, t.cgroups(s.cgroups), t.bounds(s.cgroups))
}

// tried is what a try of a cell has shown.
type tried struct {
	err     error
	spaces  bool
	why     string // there are no name spaces
	missing []string
	status  string // of the command, as /proc has it
	group   string // its cgroup, "" for none
	kills   bool   // by its cgroup
	bounded bool   // by its cgroup, as a whole
}

func (s *Supervisor) try(ctx context.Context, profile Profile, dir string) (t tried) {
	// cat waits for its input to end: there is time to look at it.
	p, err := s.Start(Spec{Run: "doctor", Argv: []string{"cat"}, Dir: dir, Limits: DefaultLimits(), Wall: Wall{Profile: profile}})
	s.mu.Lock()
	t.why = s.why
	s.mu.Unlock()
	if err != nil {
		t.err = err
		return t
	}
	defer p.CloseIO()
	t.spaces, t.missing = p.spaces, p.missing
	t.status = switchOf(fmt.Sprintf("/proc/%d/status", p.PID()))
	if p.group != nil {
		_, err := os.Stat(filepath.Join(p.group.path, "cgroup.kill"))
		t.group, t.kills = p.group.path, err == nil
		t.bounded = p.group.memory > 0 && p.group.processes > 0
	}
	if t.err = p.Pause(ctx); t.err == nil {
		t.err = p.Resume(ctx)
	}
	t.err = errors.Join(t.err, p.Stop(Grace{Interrupt: -1, Terminate: -1}))
	return t
}

func (t tried) has(layer string) bool { return !slices.Contains(t.missing, layer) }

// Loose says why what a run does may be felt beyond its directory, its home and /tmp, but
// for its way out, which asks by itself; "" where the whole wall holds it there.
func Loose(p Profile, missing, writes []string) string {
	if p == Open {
		return "its profile is open: nothing stands around it"
	}
	for _, layer := range []string{layerSpaces, layerLandlock, layerSeccomp} {
		if slices.Contains(missing, layer) {
			return "the wall around it has no " + layer
		}
	}
	if len(writes) > 0 {
		return "it may write " + writes[0] + " as well"
	}
	return ""
}

// Loose is that of a run as it was really started.
func (p *Process) Loose() string { return Loose(p.wall.Profile, p.missing, p.wall.Write) }

// Loose is that of a run which is yet to be started.
func (s *Supervisor) Loose(spec Spec) string {
	missing, err := s.lacks()
	if err == nil {
		err = s.grant(&spec)
	}
	if err != nil {
		return "no wall can be put around it: " + err.Error()
	}
	return Loose(spec.Wall.Profile, missing, spec.Wall.Write)
}

func (t tried) nameSpaces(walled bool) Layer {
	l := Layer{Name: layerSpaces, OK: t.spaces, Needed: walled}
	switch {
	case l.OK && slices.Contains(t.missing, layerProcfs):
		l.Detail = "held; the machine's processes can be seen, and not be reached"
	case l.OK && os.Geteuid() == 0:
		l.Detail = "made as root"
	case l.OK:
		l.Detail = "made as an ordinary user, in a user name space"
	default:
		l.Detail, l.Fix = refusedSpaces()
		l.Detail = cmp.Or(l.Detail, t.why)
		l.Detail = strings.TrimSuffix("refused: "+l.Detail, ": ")
		if walled && t.err == nil {
			l.Detail += "; a run makes no sockets, changes no modes or times of files, sees names and sizes of hidden files, not what they hold, and writes what your tools run in a directory that it shares with you, which is told"
		}
	}
	return l
}

// idmapped tells whether files of a directory can be shown to a run of root as
// those of a user that is nobody else.
func (s *Supervisor) idmapped(dir string) Layer {
	l := Layer{
		Name: layerIDMap, Detail: "can't be made on the file system of " + dir + ": a run is its owner there, and where that is root, root without any right of root",
		Fix: "a directory on ext4, xfs, btrfs or tmpfs, or an engine that does not run as root",
	}
	owner, err := ownerOf(dir)
	if err != nil {
		l.Detail, l.Fix = err.Error(), ""
		return l
	}
	space, err := s.standIn(owner)
	if err != nil {
		l.Detail = err.Error()
		return l
	}
	if mappable(dir, space) {
		return Layer{Name: layerIDMap, OK: true, Detail: fmt.Sprintf("files of %s are shown to a run as its own; it is uid %d", dir, s.cellUID())}
	}
	return l
}

func (t tried) landlock() Layer {
	l := Layer{Name: layerLandlock, Needed: true}
	abi, err := landlockABI()
	switch {
	case err != nil:
		l.Detail, l.Fix = "the kernel has none: "+err.Error(), "Linux 5.13 with CONFIG_SECURITY_LANDLOCK, and landlock among lsm= of its command line"
		if lsm := switchOf("/sys/kernel/security/lsm"); lsm != "" {
			l.Detail += "; its security modules are " + lsm
		}
	case !t.has(layerLandlock):
		l.Detail = fmt.Sprintf("ABI %d is there, and the run went without", abi)
	default:
		l.OK, l.Detail = true, fmt.Sprintf("ABI %d", abi)
		if abi < scopesSignals {
			l.Detail += "; from ABI 6 (Linux 6.12) on it holds signals and abstract sockets too; without it and name spaces a run signals only its own group"
		}
	}
	return l
}

func (t tried) seccomp() Layer {
	l := Layer{Name: layerSeccomp, Needed: true, OK: t.has(layerSeccomp) && field(t.status, "Seccomp") == "2"}
	if l.OK {
		l.Detail = "a filter refuses calls of the kernel that no run needs"
		return l
	}
	l.Detail, l.Fix = "no filter is on the run", "a kernel with CONFIG_SECCOMP_FILTER"
	return l
}

func (t tried) noNewPrivs() Layer {
	l := Layer{Name: "no_new_privs", Needed: true, OK: field(t.status, "NoNewPrivs") == "1", Detail: "set-uid programs give a run nothing"}
	if !l.OK {
		l.Detail = "not set on the run"
	}
	return l
}

func (t tried) cgroups(c *cgroups) Layer {
	l := Layer{Name: layerCgroup, OK: t.group != "" && t.kills}
	switch {
	case l.OK:
		l.Detail = "freeze and kill below " + filepath.Dir(c.dir)
		return l
	case t.group != "":
		l.Detail, l.Fix = t.group+" has no cgroup.kill", "Linux 5.14"
	case cgroupMount() == "":
		l.Detail, l.Fix = "no tree of version 2 is mounted", "mount one: mount -t cgroup2 none /sys/fs/cgroup, or systemd.unified_cgroup_hierarchy=1"
	default:
		l.Detail, l.Fix = "none may be made in "+filepath.Join(cgroupMount(), cgroupOwn()), delegate
	}
	if t.spaces {
		l.Detail += "; name spaces keep a run together without"
	}
	return l
}

// bounds tells whether memory and processes of a run are bounded as a whole.
func (t tried) bounds(c *cgroups) Layer {
	l := Layer{Name: layerBounds, OK: t.bounded, Detail: "memory and processes of a run are bounded as a whole"}
	if l.OK {
		return l
	}
	l.Detail = "each process of a run is bounded by itself alone: "
	switch {
	case t.group == "":
		l.Detail += "it has no cgroup"
	case versionOne("memory"):
		l.Detail += "the controllers of cgroups are in trees of version 1"
		l.Fix = "systemd.unified_cgroup_hierarchy=1 or cgroup_no_v1=all on the kernel's command line"
	case len(c.delegated()) < len(controllers):
		l.Detail += c.parent + " is not given the controllers memory and pids, to hand on"
		l.Fix = delegate
	default:
		l.Detail += c.parent + " holds other processes, and can't hand its controllers on"
		l.Fix = delegate
	}
	return l
}

// versionOne reports whether a controller is in a tree of version 1.
func versionOne(controller string) bool {
	for line := range strings.Lines(switchOf("/proc/cgroups")) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == controller {
			return words[1] != "0"
		}
	}
	return false
}

const delegate = "systemd-run --user --scope -p Delegate=yes swarmdeck serve, or Delegate=yes in its unit"

// refusedSpaces finds the switch of the system that refuses name spaces, and
// how to turn it. Both are "" when it is none of the known ones.
func refusedSpaces() (why, fix string) {
	for _, kind := range []string{"user", "mnt", "pid", "net", "ipc", "uts"} {
		if switchOf("/proc/sys/user/max_"+kind+"_namespaces") == "0" {
			name := "user.max_" + kind + "_namespaces"
			return name + " is 0", "sysctl -w " + name + "=15000, and the same in /etc/sysctl.d"
		}
	}
	if _, err := os.Stat("/proc/self/ns/user"); err != nil {
		return "this kernel has no user name spaces", "a kernel with CONFIG_USER_NS"
	}
	if os.Geteuid() != 0 {
		if switchOf("/proc/sys/kernel/unprivileged_userns_clone") == "0" {
			return "kernel.unprivileged_userns_clone is 0", "sysctl -w kernel.unprivileged_userns_clone=1, and the same in /etc/sysctl.d"
		}
		if switchOf("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1" {
			return "AppArmor restricts them (kernel.apparmor_restrict_unprivileged_userns is 1)",
				"a profile for this program in /etc/apparmor.d with the line userns, or sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
		}
	}
	if field(switchOf("/proc/self/status"), "Seccomp") == "2" {
		return "a seccomp filter is on this process, as on one in a container",
			"docker run --security-opt seccomp=unconfined --security-opt systempaths=unconfined, or a filter that allows clone, unshare and mount"
	}
	return "", ""
}

// switchOf is what a small file of the system says, "" for none.
func switchOf(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// field is a field of a status as /proc has it.
func field(status, name string) string {
	for line := range strings.Lines(status) {
		if v, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
