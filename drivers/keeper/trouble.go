package keeper

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

// When an agent is tried again that somebody has to mend: later each time, and when what its
// start depends on has changed, which is looked at now and then.
const (
	firstRest = time.Minute
	lastRest  = time.Hour
	lookEvery = 2 * time.Second
)

// Fail reports a failure that may pass, and plans the next try. From the fifth in a row on it
// is one that somebody has to mend, as Needs has it.
func (k *Keeper) Fail(reason string, prompted bool) {
	switch k.failures++; {
	case k.Rests():
		k.rest()
		return
	case k.trouble != nil || k.failures >= manyFailures:
		k.Needs(reason, prompted)
		return
	}
	k.Tell(fleet.Offline, reason)
	k.again(core.Backoff(k.failures-1, firstBackoff, lastRest), k.Retry)
}

// Barred reports why the agent can't be started: its host is away, or somebody has to mend it.
func (k *Keeper) Barred(what string, err error) {
	if k.Depends == nil && errors.Is(err, core.Kind(core.Unavailable)) { // the host's trouble, not the agent's
		k.failures++
		k.Tell(fleet.Offline, what+err.Error())
		k.again(core.Backoff(k.failures-1, firstBackoff, lastRest), k.Retry)
		return
	}
	k.Needs(what+err.Error(), false)
}

// Needs reports what keeps the agent from working until somebody mends it. Prompted says that
// a prompt found it, so that only a prompt says that it is mended.
func (k *Keeper) Needs(reason string, prompted bool) {
	now := time.Now()
	t := fleet.Trouble{Since: now.UTC()}
	if k.trouble != nil {
		t = *k.trouble
	}
	t.Reason, t.Prompted = core.ClipTo(reason, maxReason), prompted || t.Prompted
	t.LastAt, t.NextAt, t.Tries = now.UTC(), now.UTC().Add(core.Backoff(max(t.Tries, k.failures-manyFailures), firstRest, lastRest)), t.Tries+1
	k.trouble = &t
	k.rest()
}

// rest has the agent stand as failed until it is tried again.
func (k *Keeper) rest() {
	k.Tell(fleet.Failed, k.trouble.Reason)
	k.again(lookEvery, k.look)
}

// again plans a try, of whom somebody wants.
func (k *Keeper) again(after time.Duration, try func()) {
	if !k.Stopped && !k.Over() {
		k.Later(after, try)
	}
}

// look tries the agent if it is time, or something has changed. It is called without the lock.
func (k *Keeper) look() {
	k.lock.Lock()
	if k.trouble == nil || k.timer == nil { // it was dropped as it began
		k.lock.Unlock()
		return
	}
	if k.Rests() {
		k.again(lookEvery, k.look)
		k.lock.Unlock()
		return
	}
	k.lock.Unlock()
	k.Retry()
}

// Rests reports whether the agent has a trouble that is not to be tried again yet. A login
// that changes every moment is no reason to try as often.
func (k *Keeper) Rests() bool {
	now := time.Now()
	if !k.trouble.Resting(now) || k.Depends == nil {
		return k.trouble.Resting(now)
	}
	program, logins := k.Depends()
	return !changed(k.trouble.LastAt, program) && (now.Sub(k.trouble.LastAt) < firstRest || !changed(k.trouble.LastAt, logins...))
}

// changed reports whether a file, or an entry of a directory, is newer than a time.
func changed(since time.Time, paths ...string) bool {
	for _, path := range paths {
		if path == "" {
			continue
		}
		inside, _ := os.ReadDir(path)
		all := []string{path}
		for _, entry := range inside {
			all = append(all, filepath.Join(path, entry.Name()))
		}
		for _, p := range all {
			var st unix.Stat_t
			if unix.Stat(p, &st) == nil && time.Unix(st.Ctim.Unix()).After(since) {
				return true
			}
		}
	}
	return false
}

// lack is a kind of failure that somebody has to do something about.
type lack struct {
	code, says string
	words      []string // of the reasons that programs give, in lower case
}

// lacks is constant. The first that fits counts.
var lacks = []lack{
	{"agent_limit", "the agent is at a limit: ", []string{
		"usage limit", "rate limit", "rate_limit", "too many requests", "quota", "credit", "billing", "payment required",
	}},
	{"agent_login", "the agent needs a login: ", []string{
		"unauthorized", "forbidden", "authenticat", "api key", "api_key", "auth method", "logged in", "log in", "login",
	}},
}

// Lacking is the code of what a program that failed lacks, by what it said last, and how to
// say it; "" for nothing that is known.
func Lacking(said string) (code, says string) {
	said = strings.ToLower(said)
	for _, l := range lacks {
		if slices.ContainsFunc(l.words, func(word string) bool { return strings.Contains(said, word) }) {
			return l.code, l.says
		}
	}
	return "", ""
}
