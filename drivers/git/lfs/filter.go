package lfs

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// Word makes a program that calls Entered the filter.
const Word = "-lfs-filter"

// Names of the variables that tell the filter where objects are.
const (
	keepName = "SWARMDECK_LFS_KEEP"
	readName = "SWARMDECK_LFS_READ"
)

// MaxFill is the size up to which objects are filled in, in bytes: git holds what a filter
// answers in memory as a whole.
const MaxFill = 512 << 20

// Settings are those of git by which a program is the filter of LFS.
func Settings(program string) []string {
	line := "'" + strings.ReplaceAll(program, "'", `'\''`) + "' " + Word
	return []string{"filter.lfs.process=" + line, "filter.lfs.clean=false", "filter.lfs.smudge=false", "filter.lfs.required=true"}
}

// Env is the environment of git that tells the filter where objects are.
func (o Objects) Env() []string {
	return []string{keepName + "=" + o.Keep, readName + "=" + strings.Join(o.Read, "\x1f")}
}

// Entered is the whole life of a filter, if the program was started as one.
func Entered(args []string) (code int, is bool) {
	if len(args) != 2 || args[1] != Word {
		return 0, false
	}
	o := Objects{Keep: os.Getenv(keepName)}
	if list := os.Getenv(readName); list != "" {
		o.Read = strings.Split(list, "\x1f")
	}
	if err := o.Serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "LFS:", err)
		return 1, true
	}
	return 0, true
}

// Serve is a filter of git's (gitattributes(5), Long Running Filter Process) until
// its input ends: it makes pointers of contents and keeps these as objects, and
// contents of the pointers whose objects are there.
func (o Objects) Serve(in io.Reader, out io.Writer) error {
	l := line{in: in, out: out}
	if err := l.greet(); err != nil {
		return fmt.Errorf("greet git: %w", err)
	}
	for {
		asks, err := l.list()
		if errors.Is(err, io.EOF) && len(asks) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
		content := &packets{l: &l}
		answer := o.smudge
		if asks["command"] == "clean" {
			answer = o.clean
		} else if asks["command"] != "smudge" {
			return fmt.Errorf("git asks for %q", asks["command"])
		}
		err = answer(content, &l)
		if _, bad := io.Copy(io.Discard, content); bad != nil {
			return bad
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "LFS: %s: %v\n", asks["pathname"], err)
			err = l.say("status=error\n")
		}
		if err != nil {
			return err
		}
	}
}

// greet agrees on the version and on what the filter does.
func (l *line) greet() error {
	hello, err := l.list()
	if err != nil || hello["version"] != "2" {
		return errors.Join(err, fmt.Errorf("it speaks version %q", hello["version"]))
	}
	if err := l.say("git-filter-server\n", "version=2\n"); err != nil {
		return err
	}
	if _, err := l.list(); err != nil {
		return err
	}
	return l.say("capability=clean\n", "capability=smudge\n")
}

// clean answers with the pointer of a content. A pointer stays one, and nothing stays
// nothing.
func (o Objects) clean(in io.Reader, l *line) error {
	head := make([]byte, MaxPointer+1)
	n, err := io.ReadFull(in, head)
	if n == 0 {
		return l.answer(nil)
	}
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	if _, is := Parse(head[:n]); is {
		return l.answer(head[:n])
	}
	in = io.MultiReader(bytes.NewReader(head[:n]), in)
	if o.Keep == "" {
		sum := sha256.New()
		size, err := io.Copy(sum, in)
		if err != nil {
			return err
		}
		return l.answer(Pointer{OID: hex.EncodeToString(sum.Sum(nil)), Size: size}.Text())
	}
	a, err := add(o.Keep)
	if err != nil {
		return err
	}
	if _, err := io.Copy(a, in); err != nil {
		return errors.Join(err, a.drop())
	}
	p := a.pointer()
	if o.Has(p) {
		err = a.drop()
	} else {
		err = a.keep(o.Keep)
	}
	if err != nil {
		return err
	}
	return l.answer(p.Text())
}

// smudge answers with the content of a pointer's object, and with the pointer where
// there is none.
func (o Objects) smudge(in io.Reader, l *line) error {
	text, err := io.ReadAll(io.LimitReader(in, MaxPointer+1))
	if err != nil {
		return err
	}
	p, is := Parse(text)
	if !is { // content that is in the repository itself: git reads nothing before it has said all
		rest, err := io.ReadAll(io.LimitReader(in, MaxFill))
		if err != nil {
			return err
		}
		if len(rest) == MaxFill {
			return fmt.Errorf("it has more than %d bytes and is no pointer", MaxFill)
		}
		text = append(text, rest...)
	}
	if !is || !p.Fills() {
		return l.answer(text)
	}
	f, err := o.Open(p)
	if err != nil {
		return l.answer(text)
	}
	defer f.Close()
	sum := sha256.New()
	return l.stream(io.TeeReader(io.LimitReader(f, p.Size+1), sum), func() error { return p.is(sum) })
}

// Fills reports a pointer whose content is filled in where its object is.
func (p Pointer) Fills() bool { return !p.Extended && p.Size <= MaxFill }

// line speaks in packets (gitprotocol-common(5), pkt-line).
type line struct {
	in  io.Reader
	out io.Writer
}

// maxPacket is what a packet holds at most, in bytes.
const maxPacket = 65516

// packet reads one; flush ends a list or a content.
func (l *line) packet() (data []byte, flush bool, err error) {
	var head [4]byte
	if _, err := io.ReadFull(l.in, head[:]); err != nil {
		return nil, false, err
	}
	n, err := strconv.ParseUint(string(head[:]), 16, 16)
	switch {
	case err != nil || n > 0 && n < 4 || n > maxPacket+4:
		return nil, false, fmt.Errorf("a packet begins with %q", head)
	case n == 0:
		return nil, true, nil
	}
	data = make([]byte, n-4)
	_, err = io.ReadFull(l.in, data)
	return data, false, err
}

// maxList bounds the lines of a list.
const maxList = 100

// list reads lines KEY=VALUE up to a flush.
func (l *line) list() (map[string]string, error) {
	all := map[string]string{}
	for range maxList {
		data, flush, err := l.packet()
		if err != nil || flush {
			return all, err
		}
		key, value, _ := strings.Cut(strings.TrimSuffix(string(data), "\n"), "=")
		all[key] = value
	}
	return all, errors.New("git sends a list without an end")
}

func (l *line) send(data []byte) error {
	_, err := fmt.Fprintf(l.out, "%04x%s", len(data)+4, data)
	return err
}

// say sends a list.
func (l *line) say(lines ...string) error {
	for _, s := range lines {
		if err := l.send([]byte(s)); err != nil {
			return err
		}
	}
	_, err := io.WriteString(l.out, "0000")
	return err
}

// answer sends a short content.
func (l *line) answer(content []byte) error { return l.stream(bytes.NewReader(content), nil) }

// stream sends a content, and whether it was right once all is sent.
func (l *line) stream(content io.Reader, right func() error) error {
	if err := l.say("status=success\n"); err != nil {
		return err
	}
	_, err := io.CopyBuffer(sending{l}, only{content}, make([]byte, maxPacket))
	if bad := l.say(); bad != nil { // the end of the content
		return bad
	}
	if err == nil && right != nil {
		err = right()
	}
	if err != nil {
		return err
	}
	return l.say() // it stays at success
}

// sending sends what is written to it as packets.
type sending struct{ l *line }

// Write implements io.Writer; it is given at most a packet's worth.
func (s sending) Write(b []byte) (int, error) { return len(b), s.l.send(b) }

// only hides that a reader writes itself, in pieces of any size.
type only struct{ io.Reader }

// packets are a content that git sends.
type packets struct {
	l    *line
	left []byte
	over bool
}

func (p *packets) Read(b []byte) (int, error) {
	for len(p.left) == 0 {
		if p.over {
			return 0, io.EOF
		}
		data, flush, err := p.l.packet()
		if err != nil {
			return 0, err
		}
		p.left, p.over = data, flush
	}
	n := copy(b, p.left)
	p.left = p.left[n:]
	return n, nil
}
