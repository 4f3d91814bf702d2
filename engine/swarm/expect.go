package swarm

import (
	"fmt"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/schema"
	"swarmdeck/engine/task"
)

// maxExpected bounds the schema of a result, in bytes: it is read with its task.
const maxExpected = 16 << 10

// checkExpect refuses what no output could be held to.
func checkExpect(e *task.Expect) error {
	if e == nil {
		return nil
	}
	if len(e.Schema) > 0 {
		if err := core.CheckObject("result_schema", e.Schema, maxExpected); err != nil {
			return err
		}
		if wrong := schema.Check(e.Schema); len(wrong) > 0 {
			return core.Errorf(core.InvalidInput, "result_schema: %s: %s", strings.Join(wrong[0].Path, "/"), wrong[0].Message).With("field", "result_schema")
		}
	}
	if e.Success != "" {
		_, err := judge.NewCriterion(e.Success)
		return err
	}
	return nil
}

// unmet says why a success is not the one that was asked for, "" for nothing.
func unmet(e *task.Expect, out *task.Outcome) string {
	if e == nil || out.Status != task.Succeeded {
		return ""
	}
	if len(e.Schema) > 0 {
		check, err := schema.New(e.Schema, nil)
		if err == nil {
			_, err = check.Check("output", out.Output, false)
		}
		if err != nil {
			return err.Error()
		}
	}
	if e.Success != "" {
		c, err := judge.NewCriterion(e.Success)
		met := false
		if err == nil {
			met, err = c.Met(out.Output)
		}
		switch {
		case err != nil:
			return fmt.Sprintf("success: %s: %v", e.Success, err)
		case !met:
			return "success: " + e.Success + " is not true of the output"
		}
	}
	return ""
}
