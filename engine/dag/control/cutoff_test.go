package control_test

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"swarmdeck/engine/dag/control"
	"swarmdeck/expect"
)

// dies ends an Act as the death of its engine does: nothing more is heard of it.
func dies(context.Context, control.Job) (*control.Seen, error) {
	runtime.Goexit()
	return nil, nil
}

func TestWhatItsEngineDiedUnderIsTriedAtOnce(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.world.onAct = dies
		i := r.intend(alice, control.Spec{Steps: []control.Step{step("make", "")}})
		r.run()
		synctest.Wait()
		r.Reopen()
		r.world.onAct = nil
		r.run()
		start := time.Now()
		i = r.await(i.IntentID)
		expect.True(t, i.Status == control.Done && time.Since(start) <= 0, "%+v after %s", i, time.Since(start))
		got := r.told(i.IntentID)
		expect.True(t, slices.Contains(got, "interruption crash"), "%q", got)
	})
}

func TestWhatWasWithdrawnBeforeItsEngineDiedIsTakenBack(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.world.onAct = dies
		i := r.intend(alice, control.Spec{Steps: []control.Step{step("make", "")}})
		r.run()
		synctest.Wait()
		expect.Of(r.Withdraw(r.T.Context(), alice, i.IntentID, "enough"))(r.T)
		i = r.await(i.IntentID)
		expect.True(t, i.Status == control.Canceled && i.Steps[0].Status == control.StepUndone, "%+v", i)
		expect.Same(t, r.world.said(), []string{"probe 1/1", "act 1/1", "undo 1/1"})
	})
}

func TestAStopIsNoTry(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.world.onAct = func(ctx context.Context, _ control.Job) (*control.Seen, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		i := r.intend(alice, control.Spec{Steps: []control.Step{step("make", "")}})
		r.run()
		synctest.Wait()
		r.Stop()
		got := r.get(i.IntentID)
		expect.True(t, got.Status == control.Open && got.Tries == 0 && got.Epoch == 0, "%+v", got)
		r.world.onAct = nil
		r.Controller = r.controller()
		r.run()
		i = r.await(i.IntentID)
		expect.True(t, i.Status == control.Done && i.Steps[0].Tries == 1, "%+v", i)
		if got := r.told(i.IntentID); !slices.Contains(got, "interruption shutdown") {
			t.Errorf("%q", got)
		}
	})
}

func TestAStepThatKillsEveryEngineIsGivenUp(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.world.onAct = dies
		i := r.intend(alice, control.Spec{Steps: []control.Step{step("fail", "")}})
		for range 3 {
			r.run()
			synctest.Wait()
			r.Reopen()
		}
		r.run()
		if i = r.await(i.IntentID); i.Status != control.Failed || !strings.Contains(i.Why, "each try ended with") || i.Steps[0].Tries != 3 || i.Steps[0].Status != control.StepUndone {
			t.Errorf("%+v", i)
		}
		acts := 0
		for _, c := range r.world.said() {
			if strings.HasPrefix(c, "act") {
				acts++
			}
		}
		expect.Is(t, acts, 3)
	})
}

func TestAnActionThatNobodyCarriesOutWaits(t *testing.T) {
	inBubble(t, func(r *rig) {
		i := r.intend(alice, control.Spec{Steps: []control.Step{step("make", "")}})
		bare := control.New(control.Options{Ledger: r.Ledger, DAG: r.dag, Judge: r.judge, Tenants: r.DB.Tenants})
		whole := r.Controller
		r.Controller = bare
		r.run()
		time.Sleep(10 * time.Minute)
		if got := r.get(i.IntentID); got.Status != control.Open || got.Tries != 0 || !strings.Contains(got.Why, "nothing here carries out make") || got.Steps[0].Status != control.StepPending {
			t.Errorf("%+v", got)
		}
		r.Stop()
		r.Controller = whole
		r.run()
		i = r.await(i.IntentID)
		expect.True(t, i.Status == control.Done, "%+v", i)
	})
}

func TestManyIntentsShareTheSlots(t *testing.T) {
	inBubble(t, func(r *rig) {
		most, now := 0, 0
		r.world.onAct = func(context.Context, control.Job) (*control.Seen, error) {
			r.world.mu.Lock()
			now++
			most = max(most, now)
			r.world.mu.Unlock()
			time.Sleep(time.Second)
			r.world.mu.Lock()
			now--
			r.world.mu.Unlock()
			return nil, nil
		}
		var ids []string
		for range 30 {
			ids = append(ids, r.intend(alice, control.Spec{Steps: []control.Step{step("make", "")}}).IntentID)
		}
		start := time.Now()
		r.run()
		for _, id := range ids {
			i := r.await(id)
			expect.True(t, i.Status == control.Done, "%+v", i)
		}
		took := time.Since(start)
		expect.True(t, most == 8 && took == 4*time.Second, "%d at once, %s", most, took)
	})
}

func TestTheEmergencyStopCutsWorkOff(t *testing.T) {
	inBubble(t, func(r *rig) {
		stuck := make(chan struct{})
		r.world.onAct = func(ctx context.Context, j control.Job) (*control.Seen, error) {
			if j.Action == "hang" {
				<-stuck
			} else {
				<-ctx.Done()
			}
			return nil, ctx.Err()
		}
		i := r.intend(alice, control.Spec{Steps: []control.Step{step("make", "")}})
		deaf := r.intend(alice, control.Spec{Steps: []control.Step{step("hang", "")}})
		r.run()
		synctest.Wait()
		ctx, end := context.WithTimeout(r.T.Context(), 2*time.Second)
		late := r.Freeze(ctx, acme)
		end()
		expect.Same(t, late, []string{deaf.IntentID}, "late")
		close(stuck)
		r.world.mu.Lock()
		r.world.onAct = nil
		r.world.mu.Unlock()
		time.Sleep(time.Hour)
		got := r.get(i.IntentID)
		expect.True(t, got.Status == control.Open && got.Tries == 0 && strings.Contains(got.Why, "emergency stop"), "%+v", got)
		r.Thaw(r.T.Context(), acme)
		for _, id := range []string{i.IntentID, deaf.IntentID} {
			got := r.await(id)
			expect.True(t, got.Status == control.Done, "%+v", got)
		}
	})
}
