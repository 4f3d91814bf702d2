module go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc

go 1.26

require (
	go.opentelemetry.io/otel/exporters/otlp/otlptrace v1.37.0
	google.golang.org/grpc v1.78.0
)
