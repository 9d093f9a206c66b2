import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { consoleSettings } from '../console/server/config.ts';
import { CONSOLE_MESSAGES } from '../console/server/log-messages.ts';
import { AGENT_MESSAGES } from '../node-agent/telemetry/log-messages.ts';
import { agentSettings } from '../node-agent/wiring/config.ts';
import type { Flag } from '../runtime/config.ts';
import type { LogMessages } from '../runtime/log.ts';
import { SHARED_MESSAGES } from '../runtime/log-messages.ts';
import { EXTENDER_MESSAGES } from '../scheduler-plugin/telemetry/log-messages.ts';
import { extenderSettings } from '../scheduler-plugin/wiring/config.ts';
import { webhookSettings } from '../webhook/config.ts';
import { WEBHOOK_MESSAGES } from '../webhook/telemetry/log-messages.ts';

/**
 * A page with its generated part replaced.
 * @param command the npm script that writes it
 * @throws Error if the page has no marks
 */
export function withGeneratedPart(name: string, page: string, command: string, part: string): string {
  const [begin, end] = [`<!-- begin: npm run ${command} -->`, '<!-- end -->'];
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`${name}: the marks of its generated part are missing`);
  return `${page.slice(0, from + begin.length)}\n\n${part}\n${page.slice(to)}`;
}

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
const table = (head: string, rows: readonly (readonly string[])[]) =>
  [head, head.replace(/[^|]+/g, ' --- '), ...rows.map((row) => `| ${row.join(' | ')} |`)].join('\n');

/** The default of a setting: the schema's, or what the help text says. */
function defaultOf({ schema }: Settings, key: string, help: string): string {
  const field = (schema.shape as Record<string, { safeParse(input: unknown): { success: boolean; data?: unknown } }>)[
    key
  ];
  const absent = field?.safeParse(undefined);
  if (absent?.success && absent.data !== undefined && !help.includes('default')) return `\`${String(absent.data)}\``;
  return '';
}

function flagTables(): string {
  return DAEMONS.map((daemon) => {
    const rows = Object.entries(daemon.flags).map(([key, { flag, help, env }]) => {
      const variable = env === undefined ? '' : `\`${env}\``;
      return [`\`${flag.replaceAll('|', '\\|')}\``, defaultOf(daemon, key, help), variable, cell(help)];
    });
    return `## ${daemon.name}\n\n${table('| flag | default | variable | meaning |', rows)}\n`;
  }).join('\n');
}

/** The fields below one, by path: lists are `name[]`, maps are `name{}`. */
function fieldsBelow(path: string, field: Field): readonly (readonly [string, Field])[] {
  const inner = field.items ?? field.additionalProperties ?? field;
  const here = field.items ? `${path}[]` : field.additionalProperties ? `${path}{}` : path;
  return Object.entries(inner.properties ?? {}).flatMap(([name, one]) => [
    [`${here}.${name}`, one] as const,
    ...fieldsBelow(`${here}.${name}`, one),
  ]);
}

function apiTable(): string {
  const { spec } = parse(readFileSync(DEFINITION, 'utf8')) as {
    spec: { versions: { name: string; schema: { openAPIV3Schema: Field } }[] };
  };
  return spec.versions
    .map(({ name, schema: { openAPIV3Schema: whole } }) => {
      const status = whole.properties?.['status'] ?? {};
      const rows = fieldsBelow('status', status).map(([path, field]) => {
        const says = [field.description ?? '', field.enum === undefined ? '' : `One of ${field.enum.join(', ')}.`];
        return [`\`${path}\``, field.type ?? '', cell(says.filter((one) => one !== '').join(' '))];
      });
      return `## ${name}\n\n${cell(whole.description ?? '')}\n\n${table('| field | type | meaning |', rows)}\n`;
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
  const levelList = ([level, messages]: [string, Readonly<Record<string, string>>]) => {
    const entries = Object.entries(messages).map(([message, meaning]) => ({ code: `\`${message.trim()}\``, meaning }));
    const clear = entries.filter(({ meaning }) => meaning === '').map(({ code }) => code);
    const explained = entries
      .filter(({ meaning }) => meaning !== '')
      .map(({ code, meaning }) => `- ${code}: ${meaning}`);
    return `**${level}**${clear.length > 0 ? ` ${clear.join(', ')}` : ''}\n\n${explained.join('\n')}`;
  };
  return Object.entries(LOG_MESSAGES)
    .map(([daemon, byLevel]) => `## ${daemon}\n\n${Object.entries(byLevel).map(levelList).join('\n\n')}\n`)
    .join('\n');
}

/** Pages with a generated part, and what makes it. */
export const GENERATED: Readonly<Record<string, () => string>> = {
  'flags.md': flagTables,
  'api.md': apiTable,
  'log-messages.md': logMessageLists,
};

/**
 * A page of docs/reference with its generated part replaced.
 * @throws Error if the page has no marks
 */
export function pageOf(name: string, page: string): string {
  return withGeneratedPart(name, page, 'docs:reference', GENERATED[name]?.() ?? '');
}

if (process.argv[1] === import.meta.filename) {
  for (const name of Object.keys(GENERATED)) {
    const path = join(FOLDER, name);
    writeFileSync(path, pageOf(name, readFileSync(path, 'utf8')));
  }
}
