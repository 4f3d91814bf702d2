package acp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
)

// Files of a directory that an agent is played from.
const (
	scoreFile   = "score"   // the wire that is played, of all its processes
	reachedFile = "reached" // a line for each kill that it has come to
)

// player plays the agent's side of one process's wire in step with what its client says.
type player struct {
	in      *bufio.Reader
	dead    <-chan struct{} // closed when the process that was to be killed is
	heard   map[string][]message
	ids     map[string]json.RawMessage // of the client's requests: ours, by those of the wire
	reached func()
}

// playWire plays the wire of dir from where its next process begins. A second process does so: some
// agents have one that still talks when they have been killed.
func playWire(dir string) int {
	alive, keep, err := os.Pipe()
	if err != nil {
		return 2
	}
	second := osexec.Command(os.Args[0])
	second.Env = append(os.Environ(), "ACP_TEST_PLAYER="+dir)
	second.Stdin, second.Stdout, second.Stderr = os.Stdin, os.Stdout, os.Stderr
	second.ExtraFiles = []*os.File{alive}
	if err := second.Start(); err != nil {
		return 2
	}
	_ = alive.Close()
	defer func() { _ = keep.Close() }()
	if second.Wait() != nil {
		return 2
	}
	return 0
}

func playSecond(dir string) int {
	dead := make(chan struct{})
	go func() {
		_, _ = os.NewFile(3, "alive").Read(make([]byte, 1))
		close(dead)
	}()
	lines, err := part(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "player:", err)
		return 2
	}
	p := &player{
		in: bufio.NewReader(os.Stdin), dead: dead, heard: map[string][]message{}, ids: map[string]json.RawMessage{},
		reached: func() { _ = appendTo(filepath.Join(dir, reachedFile), "\n") },
	}
	if err := p.play(lines); err != nil && err != io.EOF {
		fmt.Fprintln(os.Stderr, "player:", err)
		return 2
	}
	return 0
}

// part is what this process has of the wire: its tape tells how many there were before.
func part(dir string) ([]string, error) {
	score, err := os.ReadFile(filepath.Join(dir, scoreFile))
	if err != nil {
		return nil, err
	}
	tape, err := os.ReadFile(filepath.Join(dir, "wire"))
	if err != nil {
		return nil, err
	}
	n := bytes.Count(append([]byte("\n"), tape...), []byte("\n"+started+"\n"))
	all := strings.Split("\n"+string(score), "\n"+started+"\n")
	if n >= len(all) {
		return nil, fmt.Errorf("process %d, of %d", n, len(all)-1)
	}
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	return strings.Split(strings.ReplaceAll(all[n], "$DIR", here), "\n"), nil
}

func (p *player) play(lines []string) error {
	for i, line := range lines {
		switch {
		case strings.HasPrefix(line, fromAgent):
			if err := p.say(line[2:]); err != nil {
				return err
			}
		case strings.HasPrefix(line, toAgent):
			var want message
			if err := json.Unmarshal([]byte(line[2:]), &want); err != nil {
				return err
			}
			got, err := p.hear(want.key())
			if err != nil {
				return err
			}
			if want.Method != "" && want.ID != nil {
				p.ids[string(want.ID)] = got.ID
			}
		case line == killed:
			p.reached()
			<-p.dead
			for _, late := range lines[i+1:] {
				if strings.HasPrefix(late, fromAgent) {
					if err := p.say(late[2:]); err != nil {
						return err
					}
				}
			}
			return nil
		}
	}
	for { // its client ends it
		if _, err := p.next(); err != nil {
			return err
		}
	}
}

// say writes a message of the agent, with the id that its client gave where it is an answer.
func (p *player) say(line string) error {
	var head struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if json.Unmarshal([]byte(line), &head) == nil && head.Method == "" && head.ID != nil {
		var all map[string]json.RawMessage
		if err := json.Unmarshal([]byte(line), &all); err != nil {
			return err
		}
		if id := p.ids[string(head.ID)]; id != nil {
			all["id"] = id
		}
		data, err := json.Marshal(all)
		if err != nil {
			return err
		}
		line = string(data)
	}
	_, err := os.Stdout.WriteString(line + "\n")
	return err
}

// hear waits for a message of the client; others that come first are kept for later.
func (p *player) hear(key string) (message, error) {
	for {
		if m := p.heard[key]; len(m) > 0 {
			p.heard[key] = m[1:]
			return m[0], nil
		}
		m, err := p.next()
		if err != nil {
			return m, err
		}
		p.heard[m.key()] = append(p.heard[m.key()], m)
	}
}

func (p *player) next() (m message, err error) {
	line, err := p.in.ReadBytes('\n')
	if err != nil {
		return m, err
	}
	return m, json.Unmarshal(line, &m)
}
