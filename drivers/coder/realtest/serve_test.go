// Package realtest is a real Coder for the driver's tests: its test binary
// serves coderd over the PostgreSQL database that REAL_CODER_DSN names.
//
// It is a module of its own because coderd needs some hundred modules that
// nothing else here does. The driver's tests start the binary and talk to it
// over stdin and stdout: one JSON object a line each way, see order and answer.
package realtest

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"cdr.dev/slog/v3"
	"github.com/google/uuid"
	_ "github.com/lib/pq"

	"github.com/coder/coder/v2/agent/agenttest"
	"github.com/coder/coder/v2/coderd/coderdtest"
	"github.com/coder/coder/v2/coderd/database"
	"github.com/coder/coder/v2/coderd/database/migrations"
	"github.com/coder/coder/v2/coderd/database/pubsub"
	"github.com/coder/coder/v2/codersdk"
	"github.com/coder/coder/v2/provisioner/echo"
	"github.com/coder/coder/v2/provisionersdk/proto"
)

// order is what a test asks for.
type order struct {
	Do string `json:"do"` // "template", "agent", "leave", "member"

	// template
	Name    string            `json:"name"`
	Display string            `json:"display"`
	AppURL  string            `json:"app_url"`
	Slug    string            `json:"slug"`
	Presets map[string]string `json:"presets"` // name to system_prompt
	Bare    bool              `json:"bare"`    // without the parameters of a project
	Need    bool              `json:"need"`    // ai_prompt has no default
	Task    bool              `json:"task"`    // it has an AI task
	Hang    bool              `json:"hang"`    // a start never ends
	Fail    string            `json:"fail"`    // a start fails with this
	Says    []string          `json:"says"`    // what a start that fails says before, as errors where they begin so
	Keep    bool              `json:"keep"`    // its app has the same id in every build

	// agent starts one, leave ends it
	Token string `json:"token"`
}

// answer is what comes back.
type answer struct {
	Token string `json:"token,omitempty"` // of the agent or of the member
	ID    string `json:"id,omitempty"`    // of the template
	Error string `json:"error,omitempty"`
}

// TestServe serves until its stdin ends.
func TestServe(t *testing.T) {
	dsn := os.Getenv("REAL_CODER_DSN")
	if dsn == "" {
		t.Skip("REAL_CODER_DSN names no database: the driver's tests start this program themselves")
	}
	s := start(t, dsn)
	fmt.Printf("READY %s %s\n", s.client.URL, s.client.SessionToken())
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var o order
		var a answer
		if err := json.Unmarshal(in.Bytes(), &o); err != nil {
			a.Error = err.Error()
		} else {
			a = s.serve(t, o)
		}
		line, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("ANSWER %s\n", line)
	}
}

type server struct {
	client *codersdk.Client
	org    uuid.UUID
	agents map[string]io.Closer // by token
}

func start(t *testing.T, dsn string) *server {
	db, err := sql.Open("postgres", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxIdleConns(30) // of the two that are usual all others are opened anew, for each query
	if err := migrations.Up(db); err != nil {
		t.Fatal(err)
	}
	logger := slog.Make()
	ps, err := pubsub.New(context.Background(), logger, db, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ps.Close() })
	s := &server{agents: map[string]io.Closer{}, client: coderdtest.New(t, &coderdtest.Options{
		IncludeProvisionerDaemon: true, Database: database.New(db), Pubsub: ps, Logger: &logger,
	})}
	if token := os.Getenv("REAL_CODER_TOKEN"); token != "" { // the database has been served before
		codersdk.WithSessionToken(token)(s.client)
		me, err := s.client.User(context.Background(), codersdk.Me)
		if err != nil {
			t.Fatal(err)
		}
		s.org = me.OrganizationIDs[0]
		return s
	}
	s.org = coderdtest.CreateFirstUser(t, s.client).OrganizationID
	return s
}

func (s *server) serve(t *testing.T, o order) answer {
	switch o.Do {
	case "template":
		return s.template(t, o)
	case "agent":
		if old := s.agents[o.Token]; old != nil {
			_ = old.Close() // its machine is gone
		}
		s.agents[o.Token] = agenttest.New(t, s.client.URL, o.Token)
		return answer{}
	case "leave":
		if old := s.agents[o.Token]; old != nil {
			_ = old.Close()
			delete(s.agents, o.Token)
		}
		return answer{}
	case "member":
		member, _ := coderdtest.CreateAnotherUser(t, s.client, s.org)
		return answer{Token: member.SessionToken()}
	}
	return answer{Error: "no such order: " + o.Do}
}

func (s *server) template(t *testing.T, o order) answer {
	token := uuid.NewString()
	app := &proto.App{Slug: o.Slug, DisplayName: "Agent", Url: o.AppURL}
	if o.Keep || o.Task {
		app.Id = uuid.NewString()
	}
	graph := &proto.GraphComplete{Resources: []*proto.Resource{{
		Name: "machine", Type: "null_resource",
		Agents: []*proto.Agent{{
			Id: uuid.NewString(), Name: "main", Auth: &proto.Agent_Token{Token: token}, Apps: []*proto.App{app},
		}},
	}}}
	if !o.Bare {
		for _, name := range []string{"ai_prompt", "system_prompt"} {
			graph.Parameters = append(graph.Parameters, &proto.RichParameter{
				Name: name, Type: "string", Mutable: true, DefaultValue: "none", Required: false,
			})
		}
		if o.Need {
			graph.Parameters[0].DefaultValue, graph.Parameters[0].Required = "", true
		}
	}
	for name, text := range o.Presets {
		graph.Presets = append(graph.Presets, &proto.Preset{
			Name: name, Parameters: []*proto.PresetParameter{{Name: "system_prompt", Value: text}},
		})
	}
	if o.Task {
		graph.HasAiTasks = true
		graph.AiTasks = []*proto.AITask{{Id: uuid.NewString(), AppId: app.Id}}
	}
	responses := &echo.Responses{
		Parse:          echo.ParseComplete,
		ProvisionGraph: []*proto.Response{{Type: &proto.Response_Graph{Graph: graph}}},
	}
	switch {
	case o.Hang:
		responses.ProvisionApplyMap = map[proto.WorkspaceTransition][]*proto.Response{
			proto.WorkspaceTransition_START: {{Type: &proto.Response_Log{Log: &proto.Log{Level: proto.LogLevel_INFO, Output: "waiting"}}}},
		}
		responses.ProvisionApply = echo.ApplyComplete
	case o.Fail != "":
		var steps []*proto.Response
		for _, line := range o.Says {
			level := proto.LogLevel_INFO
			if strings.HasPrefix(line, "Error") {
				level = proto.LogLevel_ERROR
			}
			steps = append(steps, &proto.Response{Type: &proto.Response_Log{Log: &proto.Log{Level: level, Output: line}}})
		}
		responses.ProvisionApplyMap = map[proto.WorkspaceTransition][]*proto.Response{
			proto.WorkspaceTransition_START: append(steps, &proto.Response{Type: &proto.Response_Apply{Apply: &proto.ApplyComplete{Error: o.Fail}}}),
		}
		responses.ProvisionApply = echo.ApplyComplete
	}
	version := coderdtest.CreateTemplateVersion(t, s.client, s.org, responses)
	coderdtest.AwaitTemplateVersionJobCompleted(t, s.client, version.ID)
	tpl := coderdtest.CreateTemplate(t, s.client, s.org, version.ID, func(r *codersdk.CreateTemplateRequest) {
		r.Name, r.DisplayName = o.Name, o.Display
		cancel := false
		r.AllowUserCancelWorkspaceJobs = &cancel
	})
	// The list of templates is read once a build has ended, so it must be there.
	deadline := time.Now().Add(2 * time.Minute)
	for {
		if _, err := s.client.Template(context.Background(), tpl.ID); err == nil || time.Now().After(deadline) {
			return answer{Token: token, ID: tpl.ID.String()}
		}
	}
}
