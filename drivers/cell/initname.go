package cell

import (
	"os"
	"strconv"
	"strings"
	"unsafe"
)

// named is the command line of an init, by which the next engine finds it.
func named(run, engine string) []string { return []string{"swarmdeck", Word, run, engine} }

// maxRun bounds the name of a run that an init can take on while it waits.
const maxRun = 200

// noRun is what the name of an init ends with that has no run.
const noRun = "/waiting"

// waitingFor is the name of an init that has no run yet, with room for one.
func waitingFor(instance string) string {
	name := instance + noRun
	return name + strings.Repeat(" ", maxRun-len(name))
}

// rename writes the name of a run over the one in this process's command line.
// Go's arguments lie where the kernel has put them and shows them.
func rename(old, run string) {
	place := unsafe.Slice(unsafe.StringData(old), len(old))
	if len(run) > len(place) || old == run {
		return
	}
	for i := copy(place, run); i < len(place); i++ {
		place[i] = ' '
	}
}

// ofInit is the run and the engine that an init's command line names, "" for
// what is none.
func ofInit(pid int) (run, engine string) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil {
		return "", ""
	}
	words := splitZero(data)
	if len(words) != 4 || words[0] != "swarmdeck" || words[1] != Word {
		return "", ""
	}
	return strings.TrimRight(words[2], " "), words[3]
}
