package dag_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/expect"
)

// says records a message of an agent in a run of its own.
func (r *rig) says(agent, text string) dag.Event {
	r.T.Helper()
	h := r.head(agent, "run of "+text)
	h.Nodes = []dag.Node{r.message(text, text, dag.RoleUser)}
	return r.emit(h, &dag.HistoryAppend{List: "main", MessageRef: text})
}

// forks records that an agent made at since was forked.
func (r *rig) forks(at dag.Event, name string, since time.Time) {
	r.T.Helper()
	h := r.head(at.AgentID, "")
	h.Nodes = []dag.Node{dag.NewNode(&dag.Subagent{ID: name, ParentAgentID: at.AgentID, Constraints: core.MustEncode(map[string]string{"since": dag.At(since).String()})})}
	r.emit(h, &dag.AgentForked{FromBranch: "main", ToBranch: fmt.Sprint(name, r.at.Unix()), AtEvent: ref(at)})
}

// past is the conversation up to an event of an agent made at since.
func (r *rig) past(at dag.Event, since time.Time) string {
	r.T.Helper()
	c := expect.Of(r.Conversation(r.T.Context(), acme, dag.ConversationQuery{Event: at.EventID, Since: since}))(r.T)
	return strings.NewReplacer(`{"user":"`, "", `"}`, "").Replace(strings.Join(c.Lines, ", "))
}

func TestAForkKnowsThePastOfItsOwnOriginAlone(t *testing.T) {
	for i := range 4 { // ids differ, and with them the order of what is sorted by them
		t.Run("a name that was given again", func(t *testing.T) {
			r := newRig(t)
			r.at = r.at.Add(time.Duration(i) * time.Hour)
			began := r.at
			ada, bob := r.says("ada", "by ada"), r.says("bob", "by bob")
			r.forks(ada, "x", began)
			first := r.says("x", "by the first x")
			second := r.at.Add(time.Millisecond)
			r.forks(bob, "x", began)
			e := r.says("x", "by the second x")
			third := r.at.Add(time.Millisecond)
			plain := r.says("x", "by the third x")
			expect.Is(t, r.past(e, second), "by bob, by the second x", "the second x knows")
			expect.Is(t, r.past(first, began), "by ada, by the first x", "the first x knows")
			expect.Is(t, r.past(plain, third), "by the third x", "the third x, which is no fork, knows")
		})
	}
	t.Run("a parent whose name another had before", func(t *testing.T) {
		r := newRig(t)
		r.says("ada", "by the ada before")
		made := r.at.Add(time.Millisecond)
		ada := r.says("ada", "by ada")
		made2 := r.at.Add(time.Millisecond)
		r.forks(ada, "x", made)
		x := r.says("x", "by x")
		made3 := r.at.Add(time.Millisecond)
		r.forks(x, "y", made2)
		expect.Is(t, r.past(r.says("y", "by y"), made3), "by ada, by x, by y", "y knows")
	})
	t.Run("a fork that somebody tells of later", func(t *testing.T) {
		r := newRig(t)
		made := r.at.Add(time.Millisecond)
		eve, ada := r.says("eve", "by eve"), r.says("ada", "by ada")
		r.forks(ada, "x", made)
		r.forks(eve, "x", made) // it was told already
		r.says("x", "by x")
		r.says("z", "by z")
		r.forks(eve, "x", made) // they have begun
		r.forks(eve, "z", made)
		expect.Is(t, r.past(r.says("x", "and again x"), made), "by ada, by x, and again x", "x knows")
		expect.Is(t, r.past(r.says("z", "and again z"), made), "by z, and again z", "z, which is no fork, knows")
	})
}

func TestAnAncestryIsInTheOrderOfTime(t *testing.T) {
	for i := range 4 {
		r := newRig(t)
		r.at = r.at.Add(time.Duration(i) * time.Hour)
		var want []string
		for _, from := range []string{"ada", "bob", "eve"} {
			at := r.says(from, "by "+from)
			r.forks(at, "x", r.at)
			want = append(want, "Event:"+at.EventID, "Agent:"+from, "Agent:"+from)
		}
		all := expect.Of(r.Ancestry(t.Context(), acme, "x"))(r.T)
		var got []string
		for _, a := range all {
			got = append(got, a.Node.String())
		}
		expect.Same(t, got, want, "x comes from")
	}
}
