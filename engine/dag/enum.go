package dag

import (
	"reflect"
	"slices"
	"sync"

	"swarmdeck/engine/core"
)

// Kind is an event's kind (model 4, EventKind).
type Kind string

// The kinds of the model's enumeration.
const (
	KindModelRequest         Kind = "model_request"
	KindModelResponse        Kind = "model_response"
	KindHistoryAppend        Kind = "history_append"
	KindToolCall             Kind = "tool_call"
	KindToolResult           Kind = "tool_result"
	KindMCPResourceUpdated   Kind = "mcp.resource_updated"
	KindMCPListChanged       Kind = "mcp.resource_list_changed"
	KindPolicyActivated      Kind = "policy_activated"
	KindInterruption         Kind = "interruption"
	KindSubstitution         Kind = "substitution"
	KindAgentForked          Kind = "agent_forked"
	KindRunStarted           Kind = "run_started"
	KindRunFinished          Kind = "run_finished"
	KindSnapshotMaterialized Kind = "snapshot_materialized"
)

// The kinds of a resource's life, which the model defines beside it.
const (
	KindSnapshotCreated  Kind = "snapshot_created"
	KindResourceAttached Kind = "resource_attached"
	KindResourceDetached Kind = "resource_detached"
	KindLivenessProbe    Kind = "resource_liveness_probe"
	KindRestoreAttempted Kind = "restore_attempted"
)

// typeCode is a node type's number in keys, from 1.
func typeCode(t NodeType) byte { return byte(slices.Index(NodeTypes(), t) + 1) }

// CallStatus is how a tool call ended (model 4, ToolCallStatus).
type CallStatus string

// The ends of a tool call.
const (
	CallOK          CallStatus = "ok"
	CallError       CallStatus = "error"
	CallTimeout     CallStatus = "timeout"
	CallCanceled    CallStatus = "canceled"
	CallInterrupted CallStatus = "interrupted"
)

// Reason is why work was interrupted (model 4, InterruptionReason).
type Reason string

// The reasons.
const (
	ReasonCrash          Reason = "crash"
	ReasonShutdown       Reason = "shutdown"
	ReasonContextReset   Reason = "context_reset"
	ReasonApprovalDenied Reason = "approval_denied"
	ReasonTimeout        Reason = "timeout"
	ReasonCanceled       Reason = "canceled"
	ReasonSystemRestart  Reason = "system_restart"
)

// ResourceKind is a kind of resource (model 4).
type ResourceKind string

// The kinds of resource.
const (
	ResourceVolume    ResourceKind = "docker_volume"
	ResourceContainer ResourceKind = "docker_container"
	ResourceImage     ResourceKind = "docker_image"
	ResourceFile      ResourceKind = "file"
	ResourceURI       ResourceKind = "uri"
)

// MessageRole is who speaks (model 4).
type MessageRole string

// The roles.
const (
	RoleSystem    MessageRole = "system"
	RoleUser      MessageRole = "user"
	RoleAssistant MessageRole = "assistant"
	RoleTool      MessageRole = "tool"
)

// Liveness is what a probe found; advisory (model 4, ResourceLiveness).
type Liveness string

// What a probe finds.
const (
	LiveUnknown Liveness = "unknown"
	Alive       Liveness = "alive"
	Dead        Liveness = "dead"
)

// Capability is what can be done with a resource (model 4).
type Capability string

// The capabilities.
const (
	CanSnapshot   Capability = "snapshot"
	CanRestore    Capability = "restore"
	CanFork       Capability = "fork"
	CanShare      Capability = "share"
	CanMigrate    Capability = "migrate"
	CanCheckpoint Capability = "checkpoint"
)

// Outcome is how an attempt ended. Only a restore is "unsupported".
type Outcome string

// The outcomes.
const (
	OutcomeOK          Outcome = "ok"
	OutcomeError       Outcome = "error"
	OutcomeUnsupported Outcome = "unsupported"
)

// Mode is how a resource is attached.
type Mode string

// The modes.
const (
	ReadOnly  Mode = "ro"
	ReadWrite Mode = "rw"
)

// Plan is what a fork does with a resource.
type Plan string

// The plans.
const (
	PlanKeep     Plan = "keep"
	PlanSnapshot Plan = "snapshot"
	PlanDiscard  Plan = "discard"
)

// PolicyKind tells a proposal from the policy that rules.
type PolicyKind string

// The kinds of policy.
const (
	PolicyActive   PolicyKind = "active"
	PolicyProposal PolicyKind = "proposal"
)

func callStatuses() []CallStatus {
	return []CallStatus{CallOK, CallError, CallTimeout, CallCanceled, CallInterrupted}
}

// Reasons are the values of an interruption's reason.
func Reasons() []Reason {
	return []Reason{ReasonCrash, ReasonShutdown, ReasonContextReset, ReasonApprovalDenied, ReasonTimeout, ReasonCanceled, ReasonSystemRestart}
}

func resourceKinds() []ResourceKind {
	return []ResourceKind{ResourceVolume, ResourceContainer, ResourceImage, ResourceFile, ResourceURI}
}

// enums are the words of each enumeration, as JSON has them.
var enums = sync.OnceValue(func() map[reflect.Type][]string {
	return map[reflect.Type][]string{
		reflect.TypeFor[CallStatus]():   core.Strings(callStatuses()...),
		reflect.TypeFor[Reason]():       core.Strings(Reasons()...),
		reflect.TypeFor[ResourceKind](): core.Strings(resourceKinds()...),
		reflect.TypeFor[MessageRole]():  core.Strings(RoleSystem, RoleUser, RoleAssistant, RoleTool),
		reflect.TypeFor[Liveness]():     core.Strings(LiveUnknown, Alive, Dead),
		reflect.TypeFor[Capability]():   core.Strings(CanSnapshot, CanRestore, CanFork, CanShare, CanMigrate, CanCheckpoint),
		reflect.TypeFor[Outcome]():      core.Strings(OutcomeOK, OutcomeUnsupported, OutcomeError),
		reflect.TypeFor[Mode]():         core.Strings(ReadOnly, ReadWrite),
		reflect.TypeFor[Plan]():         core.Strings(PlanKeep, PlanSnapshot, PlanDiscard),
		reflect.TypeFor[PolicyKind]():   core.Strings(PolicyActive, PolicyProposal),
	}
})
