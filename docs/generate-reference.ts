import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { CONSOLE_MESSAGES, consoleSettings } from '../console/server/config.ts';
import { REASONS, VERDICTS } from '../diagnosis/reasons.ts';
import { groupBy } from '../model/lists.ts';
import { AGENT_MESSAGES } from '../node-agent/telemetry/log-messages.ts';
import { agentSettings } from '../node-agent/wiring/config.ts';
import type { Flag } from '../runtime/config.ts';
import { type LogMessages, SHARED_MESSAGES } from '../runtime/log.ts';
import { EXTENDER_MESSAGES } from '../scheduler-plugin/telemetry/log-messages.ts';
import { extenderSettings } from '../scheduler-plugin/wiring/config.ts';
import { webhookSettings } from '../webhook/config.ts';
import { WEBHOOK_MESSAGES } from '../webhook/telemetry/log-messages.ts';
import { metricTables } from './metric-tables.ts';

/** A daemon's settings, as far as a table of flags needs them. */
interface Settings {
  readonly name: string;
  readonly flags: Readonly<Record<string, Flag>>;
  readonly schema: { readonly shape: object };
}

/** A field of a custom resource, as its OpenAPI schema has it. */
interface Field {
  readonly type?: string;
  readonly description?: string;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Field>>;
  readonly items?: Field;
  readonly additionalProperties?: Field;
  readonly enum?: readonly string[];
}

const FOLDER = join(import.meta.dirname, 'reference');
const DEFINITION = join(import.meta.dirname, '../manifests/base/crd/nodetopologies.yaml');
const DAEMONS: readonly Settings[] = [webhookSettings, extenderSettings, agentSettings, consoleSettings];

const cell = (text: string) => text.replaceAll('|', '\\|').replaceAll('<', '&lt;').replaceAll('\n', ' ');
const table = (head: string, rows: readonly string[]) =>
  [head, head.replace(/[^|]+/g, '-'), ...rows.map((row) => `| ${row} |`)].join('\n');

/** The default of a setting: the schema's, or what the help text says. */
function defaultOf({ schema }: Settings, key: string, help: string): string {
  const fields = schema.shape as Record<string, { safeParse(input: unknown): { success: boolean; data?: unknown } }>;
  const absent = fields[key]?.safeParse(undefined);
  const hasDefault = absent?.success && absent.data !== undefined && !help.includes('default');
  return hasDefault ? `\`${String(absent.data)}\`` : '';
}

function flagRows(daemon: Settings): readonly string[] {
  return Object.entries(daemon.flags).map(([key, { flag, help, env }]) => {
    const variable = env === undefined ? '' : ` or \`${env}\``;
    return [`\`${flag.replaceAll('|', '\\|')}\`${variable}`, defaultOf(daemon, key, help), cell(help)].join(' | ');
  });
}

/** A table for each daemon, after one for the flags that are the same in every daemon. */
function flagTables(): string {
  const daemons = new Map<string, string[]>();
  for (const daemon of DAEMONS)
    for (const row of flagRows(daemon)) daemons.set(row, [...(daemons.get(row) ?? []), daemon.name]);
  const tables = groupBy([...daemons], ([, names]) =>
    names.length === DAEMONS.length ? 'Every daemon' : names.join(', '),
  );
  return [...tables]
    .sort(([, [one]], [, [other]]) => (other?.[1].length ?? 0) - (one?.[1].length ?? 0))
    .map(([name, rows]) => {
      const lines = rows.map(([row]) => row);
      return `## ${name}\n\n${table('| flag | default | meaning |', lines)}\n`;
    })
    .join('\n');
}

/** A path with `[]` for the items of a list and `{}` for the values of a map. */
function pathOf(name: string, field: Field): string {
  if (field.items) return `${name}[]`;
  return field.additionalProperties ? `${name}{}` : name;
}

/** What makes a field without fields of its own the same as one of another object. */
const leafKey = (name: string, { description }: Field) => `leaf ${name}: ${description}`;

/** Fields that name a thing, such as a pod, in several objects: from two in a row that are the same, one line is enough. */
const MIN_REPEATED = 2;

/** Lines of the table for the fields of an object. Objects, and fields in a row, that are the same are written once. */
function fieldRows(path: string, field: Field, written: Map<string, string>): readonly string[] {
  const properties = Object.entries(field.properties ?? {});
  const repeated = properties.findIndex(([name, property]) => !written.has(leafKey(name, property)));
  const count = repeated < 0 ? properties.length : repeated;
  const [first] = properties;
  const isRepeated = first !== undefined && count >= MIN_REPEATED;
  const rest = isRepeated ? properties.slice(count) : properties;
  const names = properties.slice(0, count).map(([name]) => `\`${path}.${name}\``);
  const rows = rest.flatMap(([name, property]) => {
    const propertyPath = pathOf(`${path}.${name}`, property);
    const value = property.items ?? property.additionalProperties ?? property;
    const fields = Object.entries(value.properties ?? {}).map(([key, { description }]) => `${key}: ${description}`);
    const isLeaf = fields.length === 0;
    const key = isLeaf ? leafKey(name, property) : fields.join();
    const same = isLeaf ? undefined : written.get(key);
    const type = value.type === 'integer' || value.type === 'boolean' ? ` ${value.type}` : '';
    const texts = [
      property.description ?? '',
      property.enum === undefined ? '' : `One of ${property.enum.join(', ')}.`,
      same === undefined ? '' : `Fields as in \`${same}\`.`,
    ];
    const row = `\`${propertyPath}\`${type} | ${cell(texts.filter((text) => text !== '').join(' '))}`;
    if (same !== undefined) return [row];
    written.set(key, isLeaf ? path : propertyPath);
    return [row, ...fieldRows(propertyPath, value, written)];
  });
  if (!isRepeated) return rows;
  return [`${names.join(', ')} | As in \`${written.get(leafKey(...first))}\`.`, ...rows];
}

function apiTable(): string {
  const { spec } = parse(readFileSync(DEFINITION, 'utf8')) as {
    spec: { versions: { name: string; schema: { openAPIV3Schema: Field } }[] };
  };
  return spec.versions
    .map(({ name, schema: { openAPIV3Schema: whole } }) => {
      const rows = fieldRows('status', whole.properties?.['status'] ?? {}, new Map());
      return `## ${name}\n\n${table('| field | meaning |', rows)}\n`;
    })
    .join('\n');
}

/** The messages of the log, by daemon. */
export const LOG_MESSAGES: Readonly<Record<string, LogMessages>> = {
  webhook: WEBHOOK_MESSAGES,
  'scheduler-plugin': EXTENDER_MESSAGES,
  'node-agent': AGENT_MESSAGES,
  console: CONSOLE_MESSAGES,
  'every daemon': SHARED_MESSAGES,
};

/** A list for each daemon and level; messages that say everything are on its first line. */
function logMessageLists(): string {
  return Object.entries(LOG_MESSAGES)
    .map(([daemon, { info = {}, warn = {}, error = {}, fatal = {} }]) => {
      const explained = Object.fromEntries(Object.entries(info).filter(([, meaning]) => meaning !== ''));
      const parts = [
        messageTable('warn', 'what to do', warn),
        messageTable('info', 'meaning', explained),
        messageTable('error', 'what to do', { ...error, ...fatal }),
      ];
      return `## ${daemon}\n\n${parts.filter((part) => part !== '').join('\n\n')}\n`;
    })
    .join('\n');
}

/** Without spaces around the cells: the limit of words counts each bar between spaces. */
function messageTable(level: string, meaning: string, messages: Readonly<Record<string, string>>): string {
  const rows = Object.entries(messages).map(([message, text]) => `|\`${message.trim()}\`|${text}|`);
  return rows.length === 0 ? '' : [`|${level}|${meaning}|`, '|-|-|', ...rows].join('\n');
}

/** The reasons of states, by verdict. */
function reasonList(): string {
  const width = Math.max(...Object.keys(REASONS).map(({ length }) => length)) + 2;
  const lines = VERDICTS.toReversed().flatMap((verdict) => [
    `${verdict}:`,
    ...Object.entries(REASONS).flatMap(([reason, row]) =>
      row.verdict === verdict ? [`  ${reason.padEnd(width)}${row.about}`] : [],
    ),
  ]);
  return `\`\`\`text\n${lines.join('\n')}\n\`\`\`\n`;
}

/** Pages with a generated part, and what makes it. */
export const GENERATED: Readonly<Record<string, () => string>> = {
  'flags.md': flagTables,
  'api.md': apiTable,
  'log-messages.md': logMessageLists,
  'metrics.md': metricTables,
  'vm-states.md': reasonList,
};

/**
 * A page of docs/reference with its generated part replaced.
 * @throws Error if the page has no marks
 */
export function pageOf(name: string, page: string): string {
  const [begin, end] = ['<!-- begin: npm run docs:reference -->', '<!-- end -->'];
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`${name}: the marks of its generated part are missing`);
  return `${page.slice(0, from + begin.length)}\n\n${GENERATED[name]?.() ?? ''}\n${page.slice(to)}`;
}

if (process.argv[1] === import.meta.filename) {
  for (const name of Object.keys(GENERATED)) {
    const path = join(FOLDER, name);
    writeFileSync(path, pageOf(name, readFileSync(path, 'utf8')));
  }
}
