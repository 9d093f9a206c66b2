import { remedyLines } from '../../diagnosis/remedies.ts';
import type { Stage } from '../../diagnosis/state.ts';
import { type ClusterFlags, usingCluster } from '../support/cluster.ts';
import { ageText, type OutputFormat, print } from '../support/output.ts';
import { cutLine, type Line, paint, remedyParagraph, type Style, someNames, wrap } from '../support/terminal.ts';
import { type ExplainedEvent, type Explanation, explain, isOfPlumbline } from './explain.ts';
import { nearestLines, readNearest } from './nearest.ts';
import { parseReference } from './reference.ts';
import type { ExtenderChoice } from './search.ts';
import { readSubject } from './subject.ts';

export interface ExplainFlags extends ClusterFlags, ExtenderChoice {
  readonly output?: OutputFormat;
}

/** Prints why a VM or pod does not run, or where it runs. @throws CliError, KubeError */
export function run(kind: string, name: string | undefined, flags: ExplainFlags): Promise<void> {
  const reference = parseReference(kind, name, flags.namespace);
  return usingCluster(flags, async (cluster) => {
    const subject = await readSubject(cluster.client, reference, cluster.namespace);
    const explanation = await explain(cluster, subject, flags, Date.now());
    const isForPeople = flags.output === undefined || flags.output === 'wide';
    const nearest = isForPeople ? await readNearest(cluster.client, explanation) : undefined;
    await print(flags.output, explanation, {
      text: ({ width }, wide) => [
        ...explanationLines(explanation, wide ? Number.POSITIVE_INFINITY : width, wide),
        ...(nearest === undefined ? [] : nearestLines(nearest, width)),
      ],
      name: () => (explanation.pod === undefined ? [] : [`pod/${explanation.pod}`]),
    });
  });
}

/** Limit for one screen; the rest is a count. */
const MAX_GROUPS = 8;

const STAGES: Readonly<Record<Stage, { readonly text: string; readonly style: Style }>> = {
  stopped: { text: 'is stopped', style: 'dim' },
  waiting: { text: 'is pending', style: 'yellow' },
  starting: { text: 'is starting', style: 'yellow' },
  failed: { text: 'failed', style: 'red' },
  stopping: { text: 'is being deleted', style: 'dim' },
  paused: { text: 'is paused', style: 'yellow' },
  running: { text: 'is running', style: 'green' },
  'not-as-requested': { text: 'is running, but not as requested', style: 'yellow' },
  migrating: { text: 'is running', style: 'green' },
};

const RUNS: readonly Stage[] = ['running', 'not-as-requested', 'migrating'];

/** For one screen: reason, remedies, nodes by reason. @param wide all nodes, and the numbers of each first one */
export function explanationLines(explanation: Explanation, width: number, wide = false): Line[] {
  const {
    kind,
    namespace,
    name,
    state,
    verdict,
    reason,
    text: why,
    pod,
    asks,
    causes,
    scheduler,
    notes,
    events,
  } = explanation;
  const help = explanation.remedies.map(remedyLines);
  const columns = Math.min(width, 120);
  const { text, style } = STAGES[state];
  const runs = RUNS.includes(state);
  const verdictStyle = runs && verdict === 'broken' ? 'red' : style;
  const para = (mark: string, body: string) => wrap(body, Math.max(40, columns), mark);
  const what = `${kind === 'vm' ? 'VM' : 'pod'} ${namespace}/${name}`;
  const [head = '', ...continued] = wrap(
    `${what} ${text}${why.startsWith('on ') ? '' : ':'} ${why}`,
    Math.max(40, columns),
    '',
    '  ',
  );
  const begin = `${what} ${text}`;
  const isWhole = head.startsWith(begin);
  const lines: Line[] = [
    isWhole ? [`${what} `, paint(verdictStyle, text), head.slice(begin.length)] : head,
    ...continued,
  ];
  if (pod !== undefined && kind === 'vm') lines.push(...para('  ', `its launcher is ${pod}`));
  const { migration } = explanation;
  if (migration?.launcher !== undefined) lines.push(...para('  ', `its target’s launcher is ${migration.launcher}`));
  if (asks !== undefined && reason !== 'Ended') lines.push(...para('  ', `it requests ${asks.text.join('; ')}`));
  if (reason !== 'Ended') lines.push(...webhookTexts(explanation).flatMap((text) => para('  ', text)));
  for (const cause of causes) lines.push(...para('  ', cause.text));
  if (help.length > 0) {
    lines.push(
      '',
      [paint('bold', 'What would help')],
      ...help.flatMap((remedy) => remedyParagraph(remedy, Math.max(40, columns), '  - ')),
    );
  }
  if (notes.length > 0) {
    lines.push('', ...notes.flatMap((note) => para('', `(${note})`).map((line) => [paint('dim', line)])));
  }
  lines.push(...groupLines(explanation, columns, wide));
  if (scheduler !== undefined) {
    lines.push('', [paint('bold', 'kube-scheduler says')], ...para('  ', scheduler));
  }
  const current = runs ? events.filter(isOfPlumbline) : events;
  if (current.length > 0) {
    const author = ({ component, verified }: ExplainedEvent) => (verified ? component : `${component}, not verified`);
    const rows = current.flatMap((event) =>
      para('  ', `${ageText(event.ageSeconds)} ago  ${event.reason} (${author(event)}): ${event.message}`),
    );
    lines.push('', [paint('bold', 'Events')], ...rows);
  }
  return lines;
}

function webhookTexts({ asks, reason, causes }: Explanation): string[] {
  const reasons = [reason, ...causes.map((cause) => cause.reason)];
  const isSaid = reasons.some((reason) => reason === 'WebhookMissed' || reason === 'NotDecided');
  return asks?.webhook === undefined || asks.webhook.decision === 'padded' || isSaid ? [] : [asks.webhook.text];
}

function groupLines({ nodes }: Explanation, columns: number, wide: boolean): Line[] {
  if (nodes.length === 0) return [];
  const total = nodes.reduce((sum, { count }) => sum + count, 0);
  const visible = wide ? nodes : nodes.slice(0, MAX_GROUPS);
  const digits = String(Math.max(...visible.map(({ count }) => count))).length;
  const indent = ' '.repeat(digits + 4);
  const width = Math.max(40, columns);
  const lines = visible.flatMap((group): Line[] => {
    const { count, text, detail, kind } = group;
    const head = [`  ${String(count).padStart(digits)}  `, paint(kind === 'fits' ? 'green' : undefined, text)];
    const namesOf = (nodes: readonly string[], before: string) =>
      wide ? wrap(nodes, width, indent + before) : [cutLine(indent + before + someNames(nodes), columns)];
    if (detail === text) return [head, ...namesOf(group.nodes, '')];
    const [first = '', ...others] = group.nodes;
    return [head, ...wrap(`${first}: ${detail}`, width, indent), ...(count === 1 ? [] : namesOf(others, 'also '))];
  });
  const left = nodes.slice(visible.length);
  const more = left.reduce((sum, { count }) => sum + count, 0);
  return [
    '',
    [paint('bold', `Nodes by reason (${total})`)],
    ...lines,
    ...(left.length === 0 ? [] : [`  ${more} more for ${left.length} other reasons; -o wide shows all`]),
  ];
}
