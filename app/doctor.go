//go:build linux

package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/git"
	"swarmdeck/drivers/pipe"
	"swarmdeck/engine/core"
	"swarmdeck/ui/command"
	"swarmdeck/ui/door/socket"
	"swarmdeck/ui/term"
)

// doctor looks at what this machine gives a run of a profile, and at what else
// the program needs. It changes nothing, and needs no engine.
func doctor(ctx context.Context, look command.Look) []command.Check {
	// A name of its own: what an engine of the data file runs is not ended.
	cells, err := cell.NewSupervisor(cell.Options{
		Instance: fmt.Sprintf("swarmdeck-doctor-%d-%d", os.Getpid(), time.Now().UnixNano()), Hide: []string{look.Data, look.Data + ".*"},
	})
	if err != nil {
		return []command.Check{{Check: "run", Layer: "run", Needed: true, Detail: err.Error()}}
	}
	defer cells.Close()
	if look.Versions != nil {
		return versions(ctx, look, cells)
	}
	all := wall(ctx, look, cells)
	all = append(all, terminalHere(look), gitHere(ctx, cells), agentsHere(look))
	all = append(all, dataFile(look.Data)...)
	return append(all, engineHere(ctx, look.Data))
}

// wall tries the layers of the wall, and sums them up.
func wall(ctx context.Context, look command.Look, cells *cell.Supervisor) []command.Check {
	var all []command.Check
	var has, lacks []string
	sum := command.Check{Check: look.Profile, OK: true, Needed: true}
	for _, l := range cells.Layers(ctx, cell.Profile(look.Profile), look.Dir) {
		all = append(all, command.Check{Check: l.Name, Layer: l.Name, OK: l.OK, Needed: l.Needed, Detail: l.Detail, Fix: l.Fix})
		sum.OK = sum.OK && (l.OK || !l.Needed)
		switch {
		case l.Name == "run":
		case l.OK:
			has = append(has, l.Name)
		default:
			lacks = append(lacks, l.Name)
		}
	}
	named := func(names []string) string { return cmp.Or(strings.Join(names, ", "), "nothing") }
	switch {
	case !all[0].OK:
		sum.Detail = "no such run can be started in " + look.Dir
	case look.Profile == string(cell.Open):
		sum.Detail = "a run reaches all that this user reaches; what holds its processes together: " + named(has)
	default:
		sum.Detail = "a run has " + named(has) + ", and lacks " + named(lacks)
	}
	return append(all, sum)
}

func terminalHere(look command.Look) command.Check {
	caps := term.Detect(look.Getenv, term.IsTerminal(os.Stdin), term.IsTerminal(os.Stdout), look.Flags)
	c := command.Check{Check: "terminal", OK: !caps.Plain, Detail: term.Clean(caps.Term) + ", colours " + caps.Color.String()}
	if caps.ASCII {
		c.Detail += ", ASCII only"
	}
	if caps.Plain {
		c.Detail = "plain lines instead of the cockpit: " + caps.Why
	}
	return c
}

func gitHere(ctx context.Context, cells *cell.Supervisor) command.Check {
	c := command.Check{Check: "git", Fix: "install git; work trees and snapshots of repositories need it"}
	out, err := git.Git{Cells: cells}.Run(ctx, git.Call{Args: []string{"version"}})
	if err != nil {
		c.Detail = err.Error()
		return c
	}
	c.OK, c.Detail, c.Fix = true, strings.TrimSpace(strings.TrimPrefix(string(out), "git version ")), ""
	return c
}

// agentsHere looks for coding agents.
func agentsHere(look command.Look) command.Check {
	var found []string
	known, _ := command.LoadCoding(look.Getenv) // a mistake in the file is told by add
	for _, a := range known {
		if way, has := a.Way(look.Getenv("PATH")); has {
			found = append(found, a.Name+" ("+a.Prints(look.Getenv("PATH"), way)[0]+")")
		}
	}
	c := command.Check{Check: "agents", OK: len(found) > 0, Detail: strings.Join(found, ", "), Fix: "swarmdeck add lists them with their logins"}
	if !c.OK {
		c.Detail = "no coding agent is on PATH"
		c.Fix = "swarmdeck add tells how to get one; any program that reads and writes lines is an agent too"
	}
	return c
}

// Bounds of what programs print of their versions.
const (
	versionTakes   = 20 * time.Second
	versionsAtOnce = 4
	maxVersion     = 4096 // bytes
)

// versions are those that programs print, each in a cell that reaches nothing.
func versions(ctx context.Context, look command.Look, cells *cell.Supervisor) []command.Check {
	ctx, stop := context.WithTimeout(ctx, versionTakes)
	defer stop()
	all := make([]command.Check, len(look.Versions))
	slots := make(chan struct{}, versionsAtOnce)
	var done sync.WaitGroup
	for i, argv := range look.Versions {
		done.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			out := pipe.Kept{Most: maxVersion}
			exit, err := cells.Run(ctx, cell.Spec{
				Run: fmt.Sprint("version-", i), Argv: argv, Dir: "/", Env: map[string]string{"PATH": look.Getenv("PATH")},
				Limits: cell.DefaultLimits(), Wall: cell.Wall{Profile: cell.Worker},
			}, nil, &out, io.Discard)
			all[i] = command.Check{Check: argv[0], OK: err == nil && exit.Code == 0, Detail: version().FindString(string(out.Bytes()))}
		})
	}
	done.Wait()
	return all
}

var version = core.Pattern(`[0-9]+\.[0-9]+(?:[.+-]?[0-9A-Za-z]+)*`)

// dataFile looks at the data file and the keys beside it.
func dataFile(data string) []command.Check {
	file := command.Check{Check: "store", OK: true, Detail: data + " is there, to be read and written"}
	if command.DatabaseIn(data) != "" {
		file.Detail = data + " points to a PostgreSQL database"
	}
	switch err := unix.Access(data, unix.R_OK|unix.W_OK); {
	case errors.Is(err, fs.ErrNotExist):
		file.Detail = data + " is not there yet; the first command that needs it makes it"
	case err != nil:
		file.OK, file.Detail, file.Fix = false, fmt.Sprintf("%s: %v", data, err), "make it this user's, or name another by --data"
	}
	keys := command.Check{Check: "keys", OK: true}
	var said []string
	for _, path := range []string{data + ".key", data + ".secrets.key"} {
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			said = append(said, path+" is not there yet")
			continue
		}
		word, ok := "is this user's alone", false
		if err != nil {
			word = err.Error()
		} else if st, known := info.Sys().(*syscall.Stat_t); !info.Mode().IsRegular() {
			word = "is no plain file"
		} else if known && int(st.Uid) != os.Geteuid() {
			word = fmt.Sprintf("belongs to uid %d", st.Uid)
		} else if info.Mode().Perm()&0o077 != 0 {
			word = fmt.Sprintf("has mode %04o: others can open it", info.Mode().Perm())
			keys.Fix = "chmod 600 " + path
		} else {
			ok = true
		}
		keys.OK = keys.OK && ok
		said = append(said, path+" "+word)
	}
	keys.Detail = strings.Join(said, "; ")
	return []command.Check{file, keys}
}

func engineHere(ctx context.Context, data string) command.Check {
	conn, err := socket.Dial(ctx, data)
	if err != nil {
		return command.Check{Check: "engine", Detail: "none runs on " + data, Fix: "swarmdeck, or swarmdeck serve"}
	}
	conn.Close()
	return command.Check{Check: "engine", OK: true, Detail: "one runs on " + data + ", and answers"}
}
