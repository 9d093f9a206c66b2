import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { groupBy } from '../model/lists.ts';
import { createAgentMetrics } from '../node-agent/telemetry/metrics.ts';
import { JsonBodies } from '../runtime/json-bodies.ts';
import { Registry, registerServerMetrics, unreadableGauge } from '../runtime/metrics.ts';
import { createExtenderMetrics } from '../scheduler-plugin/telemetry/metrics.ts';
import { createWebhookMetrics } from '../webhook/app.ts';

/** A metric as its daemon's registry has it. */
interface DescribedMetric {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly labelNames: readonly string[];
}

const RULES = join(import.meta.dirname, '../manifests/components/monitoring/rules.yaml');

/** A server without callers. */
const IDLE = {
  bodies: new JsonBodies({ maxBodyBytes: 0 }),
  server: { connections: { open: 0, evicted: 0 }, expiries: new Map() },
};

/** Every metric of Plumbline's own, by the daemon that has it. */
export function describedMetrics(): Readonly<Record<string, readonly DescribedMetric[]>> {
  const registries = { webhook: new Registry(), 'scheduler-plugin': new Registry(), 'node-agent': new Registry() };
  createWebhookMetrics(registries.webhook);
  registerServerMetrics(registries.webhook, 'plumbline_webhook', IDLE);
  createExtenderMetrics(registries['scheduler-plugin']);
  registerServerMetrics(registries['scheduler-plugin'], 'plumbline_extender', IDLE);
  createAgentMetrics(registries['node-agent']);
  for (const registry of Object.values(registries)) registry.registerMetric(unreadableGauge);
  return Object.fromEntries(
    Object.entries(registries).map(([daemon, registry]) => [
      daemon,
      // prom-client's types leave the label names out.
      (registry.getMetricsAsArray() as unknown as DescribedMetric[]).toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    ]),
  );
}

interface Alert {
  readonly alert: string;
  readonly expr: string;
}

export function shippedAlerts(): Alert[] {
  const { spec } = parse(readFileSync(RULES, 'utf8')) as { spec: { groups: { rules: Alert[] }[] } };
  return spec.groups.flatMap(({ rules }) => rules);
}

/** The names of metrics that an expression reads, as the registries have them: a histogram without _bucket and the like. */
export function metricsIn(expr: string): string[] {
  const names = expr.match(/\bplumbline_[a-z_]+\b/g) ?? [];
  return [...new Set(names.map((name) => name.replace(/_(bucket|sum|count)$/, '')))];
}

const meaningOf = ({ type, help, labelNames }: DescribedMetric) => [type, help, ...labelNames].join('\n');

/** A table for each daemon, after one with what several daemons have, under the same or another name. */
export function metricTables(): string {
  const sections = Object.entries(describedMetrics());
  const everyMetric = sections.flatMap(([, metrics]) => metrics);
  const all = groupBy(everyMetric, meaningOf);
  const isShared = (metric: DescribedMetric) => (all.get(meaningOf(metric))?.length ?? 0) > 1;
  const shared = [...all.values()].filter((metrics) => metrics.length > 1);
  const ownOf = (metrics: readonly DescribedMetric[]) =>
    metrics.filter((metric) => !isShared(metric)).map((own) => [own]);
  return [table('several daemons', shared), ...sections.map(([daemon, metrics]) => table(daemon, ownOf(metrics)))].join(
    '\n',
  );
}

/** A line for the metrics of each group, which have the same meaning. */
function table(title: string, groups: readonly (readonly DescribedMetric[])[]): string {
  const alerts = shippedAlerts();
  const row = (metrics: readonly DescribedMetric[]) => {
    const [metric] = metrics;
    if (metric === undefined) return '';
    const { type, help, labelNames } = metric;
    const names = [...new Set(metrics.map(({ name }) => name))];
    const using = alerts.filter(({ expr }) => metricsIn(expr).some((name) => names.includes(name)));
    const labels = labelNames.length > 0 ? `{${labelNames.join(',')}}` : '';
    const described = type === 'histogram' ? `${help} (histogram)` : help;
    const quoted = names.map((name) => `\`${name}${labels}\``).join(', ');
    const cells = [quoted, described, using.map(({ alert }) => alert).join(', ')];
    return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  };
  const head = ['| Metric | Description | Alerts |', '|-|-|-|'];
  return [`### ${title}`, '', ...head, ...groups.map(row), ''].join('\n');
}
