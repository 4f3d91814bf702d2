// Package review has the panes in which people read what agents changed.
package review

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/ui/diff"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// DiffName is the pane's name and keymap scope.
const DiffName = "diff"

// Source finds diffs.
type Source interface {
	// Diff finds the diff that ref names: agent:NAME, approval:ID and the like.
	Diff(ctx context.Context, tenant, ref string) (Stored, error)
}

// Stored is a unified diff, where it is kept.
type Stored struct {
	Title string // what it is of, in an operator's words
	// Version differs where the text does; the same diff is not read twice.
	Version string
	Text    io.ReaderAt // stays as it is, may be read at any time, and needs no closing
	Size    int64       // bytes
	// State is that of the tree whose changes they are, and Parts are the digests of
	// what became of each file; both empty for any other diff.
	State string
	Parts map[string]bool
}

// Bounds of the pane.
const (
	loadsAtOnce = 8
	searchLimit = 30 * time.Second
	keptViewed  = 50 // diffs of which is kept what was viewed
)

// Diff shows one diff. Its item's ID is the diff's ref; its Part, the file that it is
// opened at: a path, or # and a number from 1.
type Diff struct {
	pane.Record
	source Source
	reader pane.Reader[Stored]
	got    *Stored
	err    error
	view   diff.View
	scan   *diff.Scanner
	gen    int                        // of the document; what is of an older one is dropped
	want   string                     // the file to go to once it is there
	turn   uint64                     // of the work when it was read, 0 to read it again
	viewed map[string]map[string]bool // by ref
	refs   []string                   // of viewed, the oldest first
	of     Work                       // nil without trees
	noting pane.Reader[notes]
	notes  *notes // of the work that is shown; nil for none, or not read yet
	me     string
	mine   map[string]bool // files of the work that were viewed by me, as it was last read
	w, h   int
}

// NewDiff makes the sheet that shows a diff, file by file.
func NewDiff(of Source, work Work) *Diff {
	return &Diff{Record: pane.NewRecord(DiffName), source: of, of: work, noting: pane.NewReader[notes](DiffName), reader: pane.NewReader[Stored](DiffName), viewed: map[string]map[string]bool{}}
}

// Replies of the pane's own Cmds.
type (
	scanned struct {
		gen  int
		part diff.Part
		err  error
	}
	loaded struct {
		gen    int
		blocks []diff.Block
		failed []diff.Segment
		err    error
	}
	found struct {
		gen  int
		at   diff.Segment
		line int
		ok   bool
		err  error
	}
)

func (p *Diff) Broad() {}

func (p *Diff) Title(pane.Env) string {
	if p.got == nil {
		return p.Item().String()
	}
	return strings.TrimSpace("diff " + p.got.Title + "  " + p.view.Title())
}

func (p *Diff) Show(_ pane.Env, it pane.Item) tea.Cmd {
	p.want, p.turn = it.Part, 0 // its files may have been edited by hand
	if p.Bind(it) {
		p.forget()
	}
	p.reach()
	return nil
}

// forget leaves what was read: another diff is shown.
func (p *Diff) forget() {
	p.got, p.err, p.scan, p.notes = nil, nil, nil, nil
	p.view.Notes, p.view.Tag = nil, nil
	p.gen++
	p.view.Find("")
	p.view.SetDocument(nil)
}

// Refresh implements pane.Pane. To look at a tree takes several runs of git: it is
// looked at again when its agent has begun, waits or has ended, or when something was done
// to the tree, not with every change of the world.
func (p *Diff) Refresh(env pane.Env) tea.Cmd {
	said := p.ask(env)
	if agent, against := p.work(); agent != "" {
		turn := max(p.of.Turn(env.Tenant, agent), p.of.Turn(env.Tenant, against))
		if p.got != nil && turn == p.turn {
			return tea.Batch(said, p.load())
		}
		p.turn = turn
	}
	source, tenant, ref := p.source, env.Tenant, p.Item().ID
	return tea.Batch(said, p.load(), p.reader.Read(ref, func(ctx context.Context) (Stored, error) { return source.Diff(ctx, tenant, ref) }))
}

func (p *Diff) Update(env pane.Env, body any) tea.Cmd {
	switch r := body.(type) {
	case scanned:
		if r.gen != p.gen {
			return nil
		}
		if p.err = r.err; r.err != nil {
			return nil
		}
		p.view.Add(r.part)
		p.reach()
		return tea.Batch(p.load(), p.step())
	case loaded:
		if r.gen != p.gen {
			return nil
		}
		for _, b := range r.blocks {
			p.view.Put(b)
		}
		for _, s := range r.failed {
			p.view.Failed(s)
		}
		if r.err != nil { // they are asked for again with the next key
			return pane.Say(r.err.Error(), true)
		}
		return p.load()
	case found:
		switch {
		case r.gen != p.gen:
			return nil
		case r.err != nil:
			return pane.Say(r.err.Error(), true)
		case !r.ok:
			return pane.Say("no further line has "+strconv.Quote(p.FilterText()), false)
		}
		p.view.Found(r.at, r.line)
		return p.load()
	}
	if a, ok := p.noting.Take(p.Item().ID, body); ok {
		return p.noted(env, a)
	}
	a, ok := p.reader.Take(p.Item().ID, body)
	if !ok {
		return nil
	}
	var cmd tea.Cmd
	switch {
	case a.Err != nil && p.got == nil:
		p.err = a.Err
	case a.Err != nil: // what was read stays
		cmd = pane.Say(a.Err.Error(), true)
	case p.got == nil || p.got.Version != a.Got.Version:
		cmd = p.open(env, &a.Got)
	}
	if a.Again {
		cmd = tea.Batch(cmd, p.Refresh(env))
	}
	return cmd
}

// open reads another text. Of a diff that has changed the same file is shown.
func (p *Diff) open(env pane.Env, got *Stored) tea.Cmd {
	if p.got != nil && p.want == "" {
		p.want = p.view.Path()
	}
	p.got, p.err = got, nil
	p.gen++
	d := diff.New(got.Text, got.Size)
	d.Colors = env.Colored
	p.view.SetDocument(d)
	if p.view.Viewed = map[string]bool{}; got.Parts == nil {
		p.view.Viewed = p.seen()
	}
	p.mine = nil
	p.settle(env)
	p.scan = diff.NewScanner(got.Text, got.Size)
	return p.step()
}

// seen are the files of this diff that were viewed.
func (p *Diff) seen() map[string]bool {
	of := p.viewed[p.Item().ID]
	if of == nil {
		if of = map[string]bool{}; len(p.refs) == keptViewed {
			delete(p.viewed, p.refs[0])
			p.refs = p.refs[1:]
		}
		p.viewed[p.Item().ID], p.refs = of, append(p.refs, p.Item().ID)
	}
	return of
}

// step scans on.
func (p *Diff) step() tea.Cmd {
	if d := p.view.Document(); d == nil || d.Done || p.scan == nil {
		return nil
	}
	scan, gen := p.scan, p.gen
	return pane.Ask(DiffName, func(ctx context.Context) any {
		part, err := scan.Next(ctx, diff.ScanStep)
		return scanned{gen, part, err}
	})
}

// load reads the lines that come into sight.
func (p *Diff) load() tea.Cmd {
	d, gen, wants := p.view.Document(), p.gen, p.view.Wants(loadsAtOnce)
	if len(wants) == 0 {
		return nil
	}
	return pane.Ask(DiffName, func(context.Context) any {
		out := loaded{gen: gen}
		for _, w := range wants {
			b, err := d.Load(w)
			if err != nil {
				out.failed, out.err = append(out.failed, w.Segment), errors.Join(out.err, err)
				continue
			}
			out.blocks = append(out.blocks, b)
		}
		return out
	})
}

// reach goes to the file that the diff was opened at, once it is there.
func (p *Diff) reach() {
	d := p.view.Document()
	if d == nil || p.want == "" {
		return
	}
	if number, is := strings.CutPrefix(p.want, "#"); is {
		if n, err := strconv.Atoi(number); err == nil && n <= len(d.Files) {
			p.view.Go(n - 1)
			p.want = ""
		}
		return
	}
	for i := range d.Files {
		if d.Files[i].Path == p.want {
			p.view.Go(i)
			p.want = ""
			return
		}
	}
}

func (p *Diff) Resize(w, h int) {
	p.w, p.h = w, h
	p.fit()
}

func (p *Diff) Do(_ pane.Env, action string) (tea.Cmd, bool) {
	if action == "next-match" || action == "prev-match" {
		return p.search(action == "prev-match", false), true
	}
	if !p.view.Do(action) {
		return nil, false
	}
	p.want = "" // whoever moves stays where they go
	p.fit()
	return p.load(), true
}

// search looks for the next line that holds what is looked for.
func (p *Diff) search(back, here bool) tea.Cmd {
	s, ok := p.view.Search(back, here)
	if !ok {
		return nil
	}
	gen := p.gen
	return pane.AskFor(DiffName, searchLimit, func(ctx context.Context) any {
		at, line, ok, err := s.Run(ctx)
		return found{gen, at, line, ok, err}
	})
}

// Filter implements pane.Pane: it searches the diff.
func (p *Diff) Filter(env pane.Env, text string) (tea.Cmd, error) {
	_, _ = p.Record.Filter(env, text)
	p.view.Find(text)
	return p.search(false, true), nil
}

// Selected implements pane.Pane: the diff, with the marked lines, or the file, as its
// part.
func (p *Diff) Selected(pane.Env) pane.Item {
	it := p.Item()
	it.Row, it.Part = p.view.Row(), p.view.Path()
	agent, against := p.work()
	if r, ok := p.view.Range(); ok && (against == "" || !r.Old) { // what is gone is the other one's
		it.Part = r.String()
	}
	if agent != "" && against == "" && p.got != nil {
		it.State = p.got.State
		it.File, it.Piece = p.piece()
	}
	return it
}

func (p *Diff) Reset() {
	p.Record.Reset()
	p.forget()
	p.want, p.viewed, p.refs = "", map[string]map[string]bool{}, nil
}

func (p *Diff) Draw(c *screen.Canvas, env pane.Env, focused bool) {
	switch {
	case p.err != nil:
		c.Text(0, 0, screen.Bad, p.err.Error())
	case p.got == nil:
		c.Text(0, 0, screen.Dim, "reading"+c.Glyphs().Ellipsis)
	default:
		p.drawNoted(c, &env, focused)
	}
}
