module go.opentelemetry.io/otel/exporters/otlp/otlptrace

go 1.26

require go.opentelemetry.io/otel/sdk v1.39.0
