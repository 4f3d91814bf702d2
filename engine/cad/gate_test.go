package cad_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
)

// merger is an integrator, as which robot acts, and a designer whose point it is
// to merge.
func merger(w *world) string {
	w.agent("ann", "integrator")
	w.bind("ann", robot.Name)
	w.agent("bob", "designer")
	w.do("bob", "entity.create_point", `{}`)
	return `{"source_workspace_id":"ws_bob","target_workspace_id":"ws_ann"}`
}

// background has robot, which acts as its CAD agent from now on, carry an operation
// out.
func (w *world) background(op cad.Operation) <-chan error {
	w.T.Helper()
	for _, a := range w.cad.Live(home) {
		if a.FleetAgent == robot.Name && a.AgentID != op.AgentID {
			w.bind(a.AgentID, "")
		}
	}
	if w.now(op.AgentID).FleetAgent == "" {
		w.bind(op.AgentID, robot.Name)
	}
	over := expect.Later(func() error {
		_, err := w.cad.Execute(context.Background(), robot, op)
		return err
	})
	return over
}

func TestAMergeByAnOperatorPassesOneByAnAgentIsAskedAbout(t *testing.T) {
	w := newWorld(t)
	params := merger(w)
	w.run()
	done := w.do("ann", "workspace.merge", params)
	expect.True(t, textOf(done.Data, "merge_result") == "success", "%s", done.Data)
	w.do("bob", "entity.create_point", `{}`)
	over := w.background(cad.Operation{AgentID: "ann", Method: "workspace.merge", Params: core.Raw(params)})
	ap := w.question()
	for _, want := range []string{`"method":"workspace.merge"`, `"source_workspace_id":"ws_bob"`, `"agent_id":"ann"`, `"fleet_agent":"robot"`, `"workspace_id":"ws_ann"`} {
		expect.True(t, strings.Contains(string(ap.Action.Args), want), "the question shows %s, without %s", ap.Action.Args, want)
	}
	if ap.Gate != judge.GateCAD || ap.ReasonCode != "cad.merge" || ap.Agent.Name != "ann" || ap.Agent.Role != "integrator" || ap.RequestedBy != "robot" ||
		!strings.HasSuffix(ap.Subject.Headline, "by robot as ann") || !strings.HasSuffix(ap.Intent, "by robot as ann") {
		t.Errorf("%+v", ap)
	}
	w.await("the agent to wait", func() bool {
		a := w.now("ann")
		return a.Shown() == "waiting for you" && a.Waiting == ap.ApprovalID
	})
	w.do("bob", "entity.create_point", `{}`) // others go on meanwhile
	expect.No(t, w.answer(ap.ApprovalID, judge.Answer{Approve: true}))
	expect.No(t, <-over)
	a := w.now("ann")
	expect.True(t, a.Waiting == "" && a.SuccessCount == 2 && w.space("ws_ann").EntityCount == 3, "%+v", a)
	w.sound()
}

func TestADeniedOperationChangesNothingAndSaysWhy(t *testing.T) {
	w := newWorld(t)
	params := merger(w)
	w.run()
	over := w.background(cad.Operation{AgentID: "ann", Method: "workspace.merge", Params: core.Raw(params)})
	expect.No(t, w.answer(w.question().ApprovalID, judge.Answer{Reason: "not yet"}))
	err := <-over
	var f *cad.OpError
	expect.True(t, errors.As(err, &f) && f.Denied && f.DecisionID != "" && strings.Contains(f.Message, "not yet") && code(err) == core.Denied,
		"%v", err)
	a := w.now("ann")
	expect.True(t, a.Status == cad.Idle && a.ErrorCount == 1 && a.Waiting == "" && w.pool.of("workspace.merge") == 0, "%+v", a)
	w.sound()
}

func TestAnEditIsCheckedLikeTheOperationItself(t *testing.T) {
	w := newWorld(t)
	params := merger(w)
	w.agent("cat", "designer")
	w.do("cat", "entity.create_line", `{}`)
	w.run()
	over := w.background(cad.Operation{AgentID: "ann", Method: "workspace.merge", Params: core.Raw(params)})
	ap := w.question()
	for name, edit := range map[string]string{
		"another agent":     `{"agent_id":"bob","params":` + params + `}`,
		"another asker":     `{"fleet_agent":"claude","params":` + params + `}`,
		"another method":    `{"method":"file.export","params":` + params + `}`,
		"an unknown field":  `{"colour":"red","params":` + params + `}`,
		"another target":    `{"params":{"source_workspace_id":"ws_bob","target_workspace_id":"ws_cat"}}`,
		"no source":         `{"params":{"target_workspace_id":"ws_ann"}}`,
		"no such workspace": `{"params":{"source_workspace_id":"nowhere","target_workspace_id":"ws_ann"}}`,
		"no deadline":       `{"params":{"deadline_ms":-1,"source_workspace_id":"ws_cat","target_workspace_id":"ws_ann"}}`,
	} {
		expect.Fails(t, w.answer(ap.ApprovalID, judge.Answer{Approve: true, Edit: core.Raw(edit)}), name)
	}
	expect.No(t, w.answer(ap.ApprovalID, judge.Answer{Approve: true, Edit: core.Raw(`{"params":{"source_workspace_id":"ws_cat","target_workspace_id":"ws_ann"}}`)}))
	expect.No(t, <-over)
	expect.Is(t, w.ids("ws_ann"), "ws_cat_line_1", "merged")
	w.sound()
}

func TestAnotherWorkspaceThanItsOwnNeedsAnOperatorBehindIt(t *testing.T) {
	w := newWorld(t)
	merger(w)
	w.run()
	op := cad.Operation{AgentID: "bob", Method: "entity.create_point", Params: core.Raw(`{"workspace_id":"ws_ann"}`)}
	over := w.background(op)
	ap := w.question()
	if ap.ReasonCode != "cad.elsewhere" || strings.Join(ap.Action.Effects, " ") != "elsewhere write" && strings.Join(ap.Action.Effects, " ") != "write elsewhere" {
		t.Errorf("%+v", ap)
	}
	expect.Of(w.cad.ShutdownAgent(context.Background(), alice, "bob"))(t)
	err := <-over
	expect.True(t, err != nil && w.space("ws_ann").Seq == 1, "a terminated agent went on: %v", err)
	w.agent("cat", "validator")
	op = cad.Operation{AgentID: "cat", Method: "entity.list", Params: core.Raw(`{"workspace_id":"ws_ann"}`)}
	expect.No(t, <-w.background(op), "looking is free")
	w.sound()
}

func TestAFileIsNotWrittenOverUnasked(t *testing.T) {
	w := newWorld(t)
	w.agent("ann", "modeler")
	w.run()
	dir := t.TempDir()
	s, err := w.cad.SetDirectory(context.Background(), alice, "ws_ann", dir)
	expect.Must(t, err == nil && s.Directory == dir, "%v %v", s, err)
	_, err = w.cad.SetDirectory(context.Background(), alice, "ws_ann", "near")
	expect.True(t, code(err) == core.InvalidInput, "%v", err)
	op := cad.Operation{AgentID: "ann", Method: "file.export", Params: core.Raw(`{"file_path":"a.stl"}`), Mark: "tk/1"}
	expect.No(t, <-w.background(op))
	expect.Of(os.Stat(filepath.Join(dir, "a.stl")))(t)
	op.Mark = ""
	over := w.background(op)
	if ap := w.question(); ap.ReasonCode != "cad.overwrite" {
		t.Errorf("%+v", ap)
	} else if err := w.answer(ap.ApprovalID, judge.Answer{Reason: "keep it"}); err != nil {
		t.Fatal(err)
	}
	expect.Is(t, class(<-over), cad.OperationFailed)
	// One that an engine began and did not store finds its own file.
	w.pool.on(nil, func(context.Context, *fakeWorker, cad.Call) error { return errKilled })
	op = cad.Operation{AgentID: "ann", Method: "file.export", Params: core.Raw(`{"file_path":"b.stl"}`), Mark: "tk/2"}
	expect.Is(t, class(<-w.background(op)), cad.SubprocessError)
	w.again()
	w.run()
	expect.No(t, <-w.background(op), "its own file stopped it")
	w.sound()
}

func TestNoRoleDeletesFiles(t *testing.T) {
	w := newWorld(t)
	if _, _, err := w.cad.PutRole(t.Context(), alice, cad.RoleTemplate{
		Name: "all", Description: "All.", AllowedOperations: cad.MethodNames(), ExampleTasks: []string{"x"},
	}); err != nil {
		t.Fatal(err)
	}
	w.agent("ann", "all")
	_, err := w.try("ann", "file.delete", `{"file_path":"a.stl"}`)
	var f *cad.OpError
	expect.True(t, errors.As(err, &f) && f.Denied && strings.Contains(f.Message, "No CAD agent deletes files") && len(w.pool.calls) == 0, "%v", err)
	w.sound()
}

func TestALocalMethodNeedsNoWorker(t *testing.T) {
	w := newWorld(t)
	_, _, err := w.cad.PutRole(t.Context(), alice, cad.RoleTemplate{
		Name: "all", Description: "All.", AllowedOperations: cad.MethodNames(), ExampleTasks: []string{"x"},
	})
	expect.No(t, err)
	w.agent("ann", "all")
	w.do("ann", "entity.create_point", `{}`)
	made := w.do("ann", "workspace.create", `{"workspace_name":"copy","base_workspace_id":"ws_ann"}`)
	s := w.space("copy")
	expect.True(t, made.WorkspaceID == "copy" && s.Base == "ws_ann" && s.EntityCount == 1 && s.AgentID == "ann", "%+v %+v", made, s)
	w.do("ann", "workspace.switch", `{"workspace_id":"copy"}`)
	a := w.now("ann")
	expect.True(t, a.WorkspaceID == "copy", "%+v", a)
	done := w.do("ann", "entity.create_point", `{}`)
	expect.True(t, done.Entities[0] == "copy_point_1", "%+v", done)
	expect.Has(t, string(w.do("ann", "agent.metrics", `{}`).Data), `"operation_count":4`)
	expect.Has(t, string(w.do("ann", "workspace.list", `{}`).Data), `"total_count":2`)
	w.sound()
}

func TestNobodyWaitsForAnAnswerThatComesTooLate(t *testing.T) {
	w := newWorld(t)
	params := core.Raw(merger(w))
	w.run()
	ctx, cancel := context.WithCancel(context.Background())
	over := expect.Later(func() error {
		_, err := w.cad.Execute(ctx, robot, cad.Operation{AgentID: "ann", Method: "workspace.merge", Params: params})
		return err
	})
	ap := w.question()
	cancel()
	expect.Err(t, <-over, context.Canceled)
	a := w.now("ann")
	expect.True(t, a.Waiting == "" && a.OperationCount == 0, "%+v", a)
	expect.Is(t, code(w.answer(ap.ApprovalID, judge.Answer{Approve: true})), core.Conflict, "a voided approval was answered")
	w.sound()
}

func TestWhereNobodyCanBeAskedTheOperationIsRefused(t *testing.T) {
	w := newWorld(t)
	op := cad.Operation{AgentID: "ann", Method: "workspace.merge", Params: core.Raw(merger(w)), Unasked: true}
	err := <-w.background(op)
	var f *cad.OpError
	expect.True(t, errors.As(err, &f) && f.Denied && strings.Contains(err.Error(), "nobody can be asked here"), "%v", err)
	open, err := w.judge.Open(context.Background(), home)
	expect.True(t, err == nil && len(open) == 0, "%+v, %v", open, err)
	w.sound()
}

func TestAQuestionEndsWithItsEngine(t *testing.T) {
	w := newWorld(t)
	params := core.Raw(merger(w))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	over := make(chan error, 1)
	old := w.cad
	go func() {
		_, err := old.Execute(ctx, robot, cad.Operation{AgentID: "ann", Method: "workspace.merge", Params: params})
		over <- err
	}()
	w.question()
	w.Close() // as if killed: nobody could take the question back
	cancel()
	expect.Fails(t, <-over, "it went on")
	w.Open()
	a := w.now("ann")
	expect.True(t, a.Waiting == "" && a.Shown() == "idle", "%+v", a)
	open, err := w.judge.Open(context.Background(), home)
	expect.True(t, err == nil && len(open) == 0, "%+v, %v", open, err)
	w.sound()
}

func TestARetriedTaskWritesOverItsOwnFilesAlone(t *testing.T) {
	w := newWorld(t)
	s := cad.Scenario{
		Name: "exported", Description: "Export, then a check that fails", Pattern: cad.Mixed, SuccessCriteria: "Done",
		Agents: []cad.Seat{{AgentID: "ann", RoleName: "modeler", WorkspaceID: "ws_ann"}},
		Tasks:  []cad.PlannedTask{planned("a", "ann", nil, cad.Step{Method: "file.export", Params: core.Raw(`{"file_path":"a.stl"}`)})},
	}
	s.Tasks[0].Check = "conflicts == 1"
	w.put(s)
	w.run()
	dir := t.TempDir()
	flow := w.over(w.start("exported", func(s *cad.StartWorkflow) { s.Directory = dir }).WorkflowID)
	retry := func() {
		t.Helper()
		expect.Of(w.cad.RetryWorkflow(t.Context(), alice, flow.WorkflowID, ""))(t)
	}
	retry()
	if flow = w.over(flow.WorkflowID); flow.Failures[len(flow.Failures)-1].ErrorCode != cad.CheckFailed || w.pool.of("file.export") != 2 {
		t.Errorf("its own file stopped it: %+v", flow.Failures)
	}
	// A file that somebody changed since is theirs.
	expect.No(t, os.WriteFile(filepath.Join(dir, "a.stl"), []byte("by hand, and longer than it was"), 0o600))
	retry()
	ap := w.question()
	expect.Is(t, ap.ReasonCode, "cad.overwrite", ap)
	expect.No(t, w.answer(ap.ApprovalID, judge.Answer{Reason: "keep it"}))
	flow = w.over(flow.WorkflowID)
	expect.True(t, w.pool.of("file.export") == 2, "%+v", flow.Failures)
	// Another run has no files here of its own.
	other := w.start("exported", func(s *cad.StartWorkflow) { s.Directory = dir })
	if ap := w.question(); ap.ReasonCode != "cad.overwrite" {
		t.Errorf("%+v", ap)
	} else if err := w.answer(ap.ApprovalID, judge.Answer{Reason: "keep it"}); err != nil {
		t.Fatal(err)
	}
	w.over(other.WorkflowID)
	w.sound()
}
