//go:build linux

package app

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	"swarmdeck/drivers/acp"
	"swarmdeck/drivers/builtin"
	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/cell/pin"
	"swarmdeck/drivers/coder"
	"swarmdeck/drivers/dag/formats"
	"swarmdeck/drivers/egress"
	"swarmdeck/drivers/exec"
	"swarmdeck/drivers/host"
	"swarmdeck/drivers/keeper"
	"swarmdeck/drivers/mcp"
	"swarmdeck/drivers/modelproxy"
	notices "swarmdeck/drivers/notice"
	"swarmdeck/drivers/policy"
	"swarmdeck/drivers/resource/docker"
	"swarmdeck/drivers/resource/files"
	"swarmdeck/drivers/resource/git"
	"swarmdeck/drivers/resource/process"
	"swarmdeck/drivers/terminal"
	"swarmdeck/drivers/tree"
	"swarmdeck/drivers/witness"
	"swarmdeck/engine"
	"swarmdeck/engine/dag/resource"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/safeopen"
	"swarmdeck/engine/secret"
	"swarmdeck/engine/skill"
	"swarmdeck/engine/swarm"
	"swarmdeck/ui/command"
	"swarmdeck/ui/door/socket"
	"swarmdeck/ui/serve"
)

// drivers fills in what carries out tasks and skills and keeps agents. Commands
// that only record need them too: they check what is asked for.
func (h *instance) drivers(need command.Need, opt *engine.Options, post *builtin.Post, secrets secret.Resolver) error {
	dir := cmp.Or(need.Dir, h.dir)
	own, err := h.ownFiles(need.Data)
	if err != nil {
		return err
	}
	opt.Own = own
	builtins := builtin.Options{Dir: dir, Own: own, Scope: h.scopeOf, Refused: post.Refused, Messages: post, Query: []string{"/proc/self/exe", QueryWord}}
	opt.Static = builtin.Definitions()
	at := h.beside(need.Data)
	instance := socket.Instance(at)
	if need.ReadOnly { // another name than the engine's, which ends what a former one left
		instance += "-reader"
	}
	if need.Active {
		if err := cell.BecomeSubreaper(); err != nil {
			return err
		}
	}
	cells := cell.Options{Instance: instance, Hide: []string{need.Data, need.Data + ".*"}, Held: h.held}
	if !need.ReadOnly {
		cells.Keep, cells.Leased = at+"/cells", h.base != nil
		h.egress = egress.New(egress.Options{})
		cells.Way, cells.Over, cells.Files, cells.Scope = h.carry, h.over, h.places, h.scope
	}
	sup, err := cell.NewSupervisor(cells)
	if err != nil {
		return err
	}
	h.closers = append(h.closers, sup.Close)
	h.cells.Store(sup)
	if cells.Leased {
		h.lease.bind(sup)
		h.closers = append(h.closers, func() error { h.lease.bind(); return nil })
	}
	opt.Formats, opt.Sources = formats.All(sup), formats.Sources()
	opt.Witnesses = witness.New(witness.Options{Cells: sup, Dir: dir, Own: own})
	programs, err := policy.New(policy.Options{Supervisor: sup})
	if err != nil {
		return err
	}
	h.closers = append(h.closers, programs.Close)
	opt.Programs = programs
	pins, err := pin.New(need.Data+".run/spill/approved", at+"/spill/approved/runs", own)
	if err != nil {
		return err
	}
	opt.Contents, opt.KeepText = pins, pins.Keep
	if need.ReadOnly { // solids are drawn; nothing else runs, but skills are looked at by what would run them
		h.cadPool(need, sup, opt)
		commands, err := exec.NewSkillRunner(nil, exec.RunnerOptions{Dir: dir})
		opt.SkillRunners = map[string]skill.Runner{
			exec.SkillKind: commands, mcp.SkillKind: mcp.SkillRunner{}, builtin.Kind: builtin.New(builtins),
		}
		return err
	}
	h.sup = sup
	if need.Active {
		if err := pins.Sweep(); err != nil {
			return err
		}
	}
	runner, err := exec.NewRunner(sup, exec.RunnerOptions{Dir: dir, Pins: pins, Secrets: secrets})
	if err != nil {
		return err
	}
	commands, err := exec.NewSkillRunner(sup, exec.RunnerOptions{Dir: dir, Pins: pins, Secrets: secrets})
	if err != nil {
		return err
	}
	builtins.Commands = commands
	models := modelproxy.New()
	h.closers = append(h.closers, models.Close)
	local := keeper.Local{Cells: sup, Dir: dir, State: at + "/homes", Pins: pins, Own: own, Models: models, Secrets: secrets}
	hosts := host.New(host.Options{Cells: sup, Epoch: epochs(opt.Store), Leased: cells.Leased, Agents: h.onHost, Kept: h.leftThere, Way: h.carryFar, Over: h.over, Held: h.held, Files: cells.Files})
	opt.Hosts, local.Hosts = hosts, hosts
	if cells.Leased {
		h.lease.bind(sup, hosts)
	}
	runtime, err := exec.NewRuntime(sup, local)
	if err != nil {
		return err
	}
	h.client = mcp.NewClient(sup, mcp.ClientOptions{State: at + "/servers", Getenv: os.Getenv, Keep: pins.Keep, Secrets: secrets})
	h.closers = append(h.closers, h.client.Close)
	opt.Tools = h.client
	opt.Runners = map[string]swarm.Runner{exec.Kind: runner, mcp.Kind: h.client.Runner()}
	opt.SkillRunners = map[string]skill.Runner{
		exec.SkillKind: commands, mcp.SkillKind: h.client.SkillRunner(), builtin.Kind: builtin.New(builtins),
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	h.gateway = mcp.NewGateway(self, mcp.Options{Dir: dir})
	local.State = at + "/terminals"
	screens := terminal.NewRuntime(local)
	local.State = at + "/agents"
	protocol, err := acp.NewRuntime(sup, acp.Options{Local: local, Servers: h.servers, Read: []string{self}, Ports: h.gateway.Ports})
	if err != nil {
		return err
	}
	h.shared.Store(protocol)
	remote, err := coder.New(coder.Options{State: at + "/workspaces"})
	if err != nil {
		return err
	}
	h.closers = append(h.closers, remote.Close)
	telling := notices.New(notices.Options{Supervisor: sup, Dir: dir, Getenv: os.Getenv})
	h.closers = append(h.closers, telling.Close)
	opt.Notices = telling
	opt.Runtimes = map[string]fleet.Runtime{"exec": runtime, "terminal": screens, "acp": protocol, "coder": remote}
	h.cadPool(need, sup, opt)
	return resources(sup, hosts, need.Data, at, dir, opt)
}

// ownFiles are the files of an engine that nobody else is to open.
func (h *instance) ownFiles(data string) (*safeopen.Own, error) {
	return safeopen.OwnFiles(data, filepath.Dir(serve.SocketPath(os.Getenv, "")))
}

// resources fills in what looks after the things that agents work on.
func resources(sup *cell.Supervisor, hosts *host.Pool, data, at, dir string, opt *engine.Options) error {
	kept, err := files.New(files.Options{Dir: at + "/snapshots", Own: data, Dest: dir})
	if err != nil {
		return err
	}
	if opt.ForkDir, err = filepath.Abs(at + "/trees"); err != nil {
		return fmt.Errorf("find a place for forks: %w", err)
	}
	opt.Dir, opt.Changes = dir, kept
	made, err := tree.New(tree.Options{Cells: sup, Hosts: hosts, Dir: opt.ForkDir, Kept: at + "/snapshots", Own: opt.Own})
	if err != nil {
		return err
	}
	opt.Trees = made
	trees, err := git.New(git.Options{Cells: sup, Dir: at + "/snapshots", Files: kept})
	if err != nil {
		return err
	}
	containers, err := docker.New(docker.Options{Cells: sup, Dir: at + "/snapshots/docker"})
	if err != nil {
		return err
	}
	opt.Resources = map[string]resource.Driver{"files": kept, "git": trees, "process": process.Driver{}, "docker": containers}
	return nil
}
