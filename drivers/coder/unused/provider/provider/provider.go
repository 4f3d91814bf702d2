// Package provider stands in for Coder's provider of Terraform. Its server
// checks the parameters of workspaces with it. What has no body does not link:
// no client calls it.
package provider

type (
	OptionType        = string
	ParameterFormType string
)

const (
	OptionTypeListString OptionType = "list(string)"

	ParameterFormTypeDefault     ParameterFormType = ""
	ParameterFormTypeRadio       ParameterFormType = "radio"
	ParameterFormTypeSlider      ParameterFormType = "slider"
	ParameterFormTypeInput       ParameterFormType = "input"
	ParameterFormTypeDropdown    ParameterFormType = "dropdown"
	ParameterFormTypeCheckbox    ParameterFormType = "checkbox"
	ParameterFormTypeSwitch      ParameterFormType = "switch"
	ParameterFormTypeMultiSelect ParameterFormType = "multi-select"
	ParameterFormTypeTagSelect   ParameterFormType = "tag-select"
	ParameterFormTypeTextArea    ParameterFormType = "textarea"
	ParameterFormTypeError       ParameterFormType = "error"
)

type Validation struct {
	Min, Max                 int
	MinDisabled, MaxDisabled bool
	Regex, Error, Monotonic  string
}

func (*Validation) Valid(typ OptionType, value string, previous *string) error
