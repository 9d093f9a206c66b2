import type { ServerResponse } from 'node:http';
import * as z from 'zod';
import { extenderVerdict } from '../../diagnosis/opinions.ts';
import { NEVER_MEANT } from '../../diagnosis/waiting.ts';
import { KubeError } from '../../kube/client.ts';
import type {
  Diagnosis,
  DrainPicture,
  ExtenderExplanation,
  InterferencePicture,
  SwitchPicture,
  VerdictGroup,
} from '../data/wire.ts';
import type { Histories } from './history.ts';

/** `why` says why there is no answer. */
type Answered<T> = { readonly answer: T } | { readonly why: string };

/** Queries the extender with `GET /explain?pod=namespace/name`. */
export type AskExtender = (pod: string) => Promise<Answered<unknown>>;

/** Explains a VM or pod, `namespace/name`, as `plumbline explain` does. */
export type AskDiagnosis = (kind: 'vm' | 'pod', name: string) => Promise<Answered<Diagnosis>>;

export type AskSwitch = (node: string) => Promise<Answered<SwitchPicture>>;

/** What a drain of a node would do, as `plumbline simulate --without`. */
export type AskDrain = (node: string) => Promise<Answered<DrainPicture>>;

export type AskInterference = (node: string) => Promise<Answered<InterferencePicture>>;

export interface QuestionSources {
  readonly ask: AskExtender;
  readonly askSwitch: AskSwitch;
  readonly askDrain: AskDrain;
  readonly askInterference: AskInterference;
  readonly diagnose: AskDiagnosis;
  readonly histories: Histories;
}

const NAMESPACED = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?\/[a-z0-9](?:[-.a-z0-9]{0,251}[a-z0-9])?$/;
const NAME = /^[a-z0-9](?:[-.a-z0-9]{0,251}[a-z0-9])?$/;

const SUBJECTS = {
  pod: { pattern: NAMESPACED, expected: 'namespace/name' },
  vm: { pattern: NAMESPACED, expected: 'namespace/name' },
  node: { pattern: NAME, expected: 'the name of a node' },
} as const;
type Subject = keyof typeof SUBJECTS;

interface Question {
  readonly subjects: readonly Subject[];
  readonly ask: (subject: Subject, name: string) => Promise<Answered<object>>;
}

/** Handles the page's queries about one node or VM, one at a time for each kind. */
export function createQuestions({ ask, askSwitch, askDrain, askInterference, diagnose, histories }: QuestionSources) {
  const fromAgent = <T extends object>(askAgent: (node: string) => Promise<Answered<T>>): Question => ({
    subjects: ['node'],
    async ask(_, node) {
      const response = await askAgent(node);
      return 'why' in response ? { why: `Cannot reach the agent: ${response.why}` } : response;
    },
  });
  const questions: Readonly<Record<string, Question>> = {
    '/explain': { subjects: ['pod'], ask: async (_, pod) => explained(pod, await ask(pod)) },
    '/switch': fromAgent(askSwitch),
    '/interference': fromAgent(askInterference),
    '/drain': { subjects: ['node'], ask: (_, node) => askDrain(node) },
    '/diagnosis': {
      subjects: ['vm', 'pod'],
      ask: (subject, name) => diagnose(subject === 'vm' ? 'vm' : 'pod', name),
    },
    '/history': { subjects: ['node', 'vm'], ask: (subject, name) => historyOf(histories, subject, name) },
  };
  const busy = new Set<string>();

  return {
    paths: Object.entries(questions).flatMap(([path, { subjects }]) =>
      subjects.map((subject) => `${path}?${subject}=${subject === 'node' ? 'name' : 'namespace/name'}`),
    ),
    /** @returns false if the path is not one of these queries */
    async answer(path: string, query: URLSearchParams, response: ServerResponse) {
      const question = Object.hasOwn(questions, path) ? questions[path] : undefined;
      if (question === undefined) return false;
      const subject = question.subjects.find((subject) => query.has(subject)) ?? question.subjects[0]!;
      const name = query.get(subject) ?? '';
      const { pattern, expected } = SUBJECTS[subject];
      if (!pattern.test(name)) {
        sendText(response, 400, `${subject}=${name.slice(0, 80)}: expected ${expected}`);
        return true;
      }
      if (busy.has(path)) {
        response.setHeader('retry-after', '1');
        sendText(response, 503, 'busy with a request of another page; try again in a second');
        return true;
      }
      busy.add(path);
      try {
        const answered = await question.ask(subject, name);
        if ('why' in answered) sendText(response, 502, answered.why);
        else send(response, 200, 'application/json', JSON.stringify(answered.answer));
      } finally {
        busy.delete(path);
      }
      return true;
    },
  };
}

function explained(pod: string, response: Answered<unknown>): Answered<object> {
  if ('why' in response) return { why: `Cannot reach the extender: ${response.why}` };
  const answer = explanationOf(pod, response.answer, Date.now());
  return answer === undefined ? { why: 'Cannot reach the extender: the answer is not from an extender' } : { answer };
}

async function historyOf(histories: Histories, subject: Subject, name: string): Promise<Answered<object>> {
  try {
    if (subject === 'node') return { answer: await histories.ofNode(name) };
    const [namespace = '', vm = ''] = name.split('/');
    return { answer: await histories.ofVm(namespace, vm) };
  } catch (error) {
    if (error instanceof KubeError) return { why: `Cannot query the API server: ${error.message}` };
    throw error;
  }
}

export function sendText(response: ServerResponse, status: number, message: string): void {
  if (status === 405) response.setHeader('allow', 'GET');
  send(response, status, 'text/plain; charset=utf-8', `${message}\n`);
}

export function send(response: ServerResponse, status: number, type: string, body: string | Buffer): void {
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) });
  response.end(body);
}

const extenderAnswer = z.object({
  reservation: z.object({ kind: z.string(), nodes: z.record(z.string(), z.string()) }).nullish(),
  nodes: z.array(extenderVerdict),
  decisions: z.array(z.object({ time: z.string(), offered: z.number(), passed: z.number() })).default([]),
});

/** @param now milliseconds since 1970 @returns undefined if the document is not an extender's */
export function explanationOf(pod: string, document: unknown, now: number): ExtenderExplanation | undefined {
  const { data } = extenderAnswer.safeParse(document);
  if (data === undefined) return undefined;
  const { reservation, decisions } = data;
  const groups = new Map<string, { -readonly [K in keyof VerdictGroup]: VerdictGroup[K] } & { number: number }>();
  const nodes = data.nodes.map((verdict) => {
    const { fits, kind, text, missing, detail } = worded(verdict);
    const group = groups.get(text) ?? { fits, kind, text, nodes: 0, missing, number: groups.size };
    groups.set(text, group);
    group.nodes++;
    if (missing !== undefined) group.missing = Math.min(group.missing ?? missing, missing);
    return [verdict.node, group.number, detail === text ? '' : detail] as const;
  });
  const ordered = [...groups.values()].sort((a, b) => rank(a) - rank(b) || b.nodes - a.nodes);
  const positions = new Map(ordered.map(({ number }, index) => [number, index]));
  return {
    pod,
    time: new Date(now).toISOString(),
    reserved: reservation?.kind === 'tentative' ? Object.keys(reservation.nodes) : [],
    lastCall: decisions.at(-1),
    groups: ordered.map(({ number: _, ...group }) => group),
    nodes: nodes
      .map(([node, number, detail]) => [node, positions.get(number) ?? 0, detail] as const)
      .sort(([a], [b]) => Number(a > b) - Number(a < b)),
  };
}

/** Order of groups. A node with a shortage is closer than one without the network, whatever their number. */
function rank({ fits, missing, kind }: Pick<VerdictGroup, 'fits' | 'missing' | 'kind'>): number {
  if (fits) return 0;
  if (missing !== undefined) return 1;
  return NEVER_MEANT.some((other) => other === kind) ? 3 : 2;
}

function worded(verdict: z.infer<typeof extenderVerdict>) {
  if (!verdict.fits) return verdict;
  const { score, cpus, numaNodes, warnings } = verdict;
  const where = cpus === '' ? 'its kubelet cannot be predicted' : `CPUs ${cpus} on NUMA node ${numaNodes.join(', ')}`;
  const detail = [`score ${score ?? '?'}: ${where}`, ...warnings].join('; ');
  return { fits: true, kind: 'fits', text: 'could run it now', missing: undefined, detail };
}
