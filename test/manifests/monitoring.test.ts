import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { describedMetrics, metricsIn, shippedAlerts } from '../../docs/metric-tables.ts';
import { root } from '../support/bundles.ts';
import { tempDirectories } from '../support/files.ts';
import { needs, pathOf } from '../support/parts.ts';
import { ALERT_CASES } from './alert-fixture.ts';

const MONITORING = join(root, 'manifests/components/monitoring');

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: Readonly<Record<string, string>>;
}

const rules = (parse(readFileSync(join(MONITORING, 'rules.yaml'), 'utf8')) as { spec: { groups: { rules: Rule[] }[] } })
  .spec;
const dashboard = JSON.parse(readFileSync(join(MONITORING, 'dashboard.json'), 'utf8')) as {
  panels: { id: number; title: string; targets?: { expr: string }[]; gridPos: Record<'x' | 'y' | 'w' | 'h', number> }[];
};

/** Labels that Prometheus adds to a series from its target. */
const OF_TARGETS = ['job', 'node', 'pod', 'instance', 'namespace'];
const metricsByName = new Map(
  Object.values(describedMetrics()).flatMap((metrics) => metrics.map((metric) => [metric.name, metric])),
);
const PROCESS = ['process_resident_memory_bytes', 'process_cpu_seconds_total'];

function unknownIn(expr: string): string[] {
  const names = metricsIn(expr);
  const foreign = (expr.match(/\b(?:process|nodejs)_[a-z_]+\b/g) ?? []).filter((name) => !PROCESS.includes(name));
  const selected = [...expr.matchAll(/\b(plumbline_[a-z_]+)\{([^}]*)\}/g)].flatMap(([, name = '', matchers = '']) => {
    const allowed = [...(metricsByName.get(metricsIn(name)[0] ?? '')?.labelNames ?? []), ...OF_TARGETS];
    return [...matchers.matchAll(/([a-z_]+)\s*(?:=|!=|=~|!~)"/g)].flatMap(([, label = '']) =>
      allowed.includes(label) ? [] : [`${name}{${label}}`],
    );
  });
  const grouped = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, labels = '']) => {
    const allowed = ['le', ...OF_TARGETS, ...names.flatMap((name) => metricsByName.get(name)?.labelNames ?? [])];
    return labels.split(/,\s*/).filter((label) => !allowed.includes(label));
  });
  return [...names.filter((name) => !metricsByName.has(name)), ...foreign, ...selected, ...grouped];
}

describe('alerts and dashboard', () => {
  it('name only metrics and labels of the daemons', () => {
    for (const { alert, expr } of shippedAlerts()) assert.deepEqual(unknownIn(expr), [], alert);
    for (const { title, targets = [] } of dashboard.panels) {
      for (const { expr } of targets) assert.deepEqual(unknownIn(expr), [], title);
    }
    // The check itself detects errors.
    assert.deepEqual(
      unknownIn('sum by (verbe) (rate(plumbline_extender_calls_total{outcom="error"}[5m])) + plumbline_x'),
      ['plumbline_x', 'plumbline_extender_calls_total{outcom}', 'verbe'],
    );
  });

  it('have a problem, a next step and a severity in every alert', () => {
    for (const { alert, labels, annotations } of rules.groups.flatMap((group) => group.rules)) {
      assert.match(labels.severity, /^(critical|warning|info)$/, alert);
      assert.deepEqual(Object.keys(annotations), ['summary', 'description'], alert);
    }
  });

  it('have panels that do not overlap', () => {
    const { panels } = dashboard;
    assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
    for (const [index, { title, gridPos: a }] of panels.entries()) {
      assert.ok(a.x + a.w <= 24, title);
      for (const { gridPos: b } of panels.slice(index + 1)) {
        const apart = a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y || b.y + b.h <= a.y;
        assert.ok(apart, title);
      }
    }
  });
});

describe('alerts, evaluated by Prometheus', () => {
  needs('promtool');
  const temp = tempDirectories();
  const alerts = shippedAlerts().map(({ alert }) => alert);

  const promtool = (...args: string[]) => execFileSync(pathOf('promtool'), args, { encoding: 'utf8', stdio: 'pipe' });
  const prepared = (): { rulesFile: string; directory: string } => {
    const directory = temp();
    const rulesFile = join(directory, 'rules.yaml');
    writeFileSync(rulesFile, stringify(rules));
    return { rulesFile, directory };
  };

  it('are valid', () => {
    assert.match(promtool('check', 'rules', prepared().rulesFile), new RegExp(`SUCCESS: ${alerts.length} rules found`));
  });

  it('each fire when they should and are silent close to it', () => {
    assert.deepEqual(Object.keys(ALERT_CASES).toSorted(), alerts.toSorted());
    const { rulesFile, directory } = prepared();
    const cases = Object.entries(ALERT_CASES);
    const test = (kind: 'fires' | 'silent') => {
      const series = cases.flatMap(([, testCase]) => Object.entries(testCase[kind]));
      assert.equal(new Set(series.map(([name]) => name)).size, series.length);
      return {
        interval: '1m',
        input_series: series.map(([name, values]) => ({ series: name, values })),
        // Only by their labels: the texts contain the values of the case.
        promql_expr_test: cases.map(([alertname, { labels }]) => {
          const { labels: own } = rules.groups
            .flatMap((group) => group.rules)
            .find(({ alert }) => alert === alertname)!;
          const alert = { ...labels, alertname, alertstate: 'firing', ...own };
          return {
            expr: `ALERTS{alertname="${alertname}",alertstate="firing"}`,
            eval_time: '65m',
            exp_samples: kind === 'fires' ? [{ labels: `ALERTS${selector(alert)}`, value: 1 }] : [],
          };
        }),
      };
    };
    const tests = [test('fires'), test('silent')];
    const file = join(directory, 'tests.yaml');
    writeFileSync(file, stringify({ rule_files: [rulesFile], evaluation_interval: '1m', tests }));
    assert.match(promtool('test', 'rules', file), /SUCCESS/);
  });
});

function selector(labels: object): string {
  return `{${Object.entries(labels).map(([name, value]) => `${name}="${value}"`)}}`;
}
