import type { ServerResponse } from 'node:http';
import * as z from 'zod';
import { extenderVerdict } from '../../diagnosis/opinions.ts';
import { NEVER_MEANT } from '../../diagnosis/waiting.ts';
import { KubeError } from '../../kube/client.ts';
import { byText, groupBy } from '../../model/lists.ts';
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

export interface QuestionSources {
  /** Queries the extender with `GET /explain?pod=namespace/name`. */
  readonly ask: (pod: string) => Promise<Answered<unknown>>;
  readonly askSwitch: (node: string) => Promise<Answered<SwitchPicture>>;
  /** What a drain of a node would do, as `plumbline simulate --without`. */
  readonly askDrain: (node: string) => Promise<Answered<DrainPicture>>;
  readonly askInterference: (node: string) => Promise<Answered<InterferencePicture>>;
  /** Explains a VM or pod, `namespace/name`, as `plumbline explain` does. */
  readonly diagnose: (kind: 'vm' | 'pod', name: string) => Promise<Answered<Diagnosis>>;
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

type Ask = (name: string) => Promise<Answered<object>>;
type Question = Readonly<Partial<Record<Subject, Ask>>>;

/** The page's queries about one node or VM by their paths, and how each kind of subject is asked about. */
function questionsFor(sources: QuestionSources): Readonly<Record<string, Question>> {
  const { ask, askSwitch, askDrain, askInterference, diagnose, histories } = sources;
  const unreachable = (what: string, why: string) => ({ why: `Cannot reach the ${what}: ${why}` });
  const ofAgent =
    (askAgent: Ask): Ask =>
    async (node) => {
      const response = await askAgent(node);
      return 'why' in response ? unreachable('agent', response.why) : response;
    };
  const explain: Ask = async (pod) => {
    const response = await ask(pod);
    if ('why' in response) return unreachable('extender', response.why);
    const answer = explanationOf(pod, response.answer, Date.now());
    return answer === undefined ? unreachable('extender', 'the answer is not from an extender') : { answer };
  };
  const history =
    (read: (name: string) => Promise<object>): Ask =>
    async (name) => {
      try {
        return { answer: await read(name) };
      } catch (error) {
        if (error instanceof KubeError) return { why: `Cannot query the API server: ${error.message}` };
        throw error;
      }
    };
  return {
    '/explain': { pod: explain },
    '/switch': { node: ofAgent(askSwitch) },
    '/interference': { node: ofAgent(askInterference) },
    '/drain': { node: askDrain },
    '/diagnosis': { vm: (name) => diagnose('vm', name), pod: (name) => diagnose('pod', name) },
    '/history': { node: history(histories.ofNode), vm: history(histories.ofVm) },
  };
}

/** Handles the page's queries, one at a time for each path. */
export function createQuestions(sources: QuestionSources) {
  const questions = new Map(Object.entries(questionsFor(sources)));
  const busy = new Set<string>();
  const subjectsOf = (question: Question) => Object.keys(question) as Subject[];

  return {
    paths: [...questions].flatMap(([path, question]) =>
      subjectsOf(question).map((subject) => `${path}?${subject}=${subject === 'node' ? 'name' : 'namespace/name'}`),
    ),
    /** @returns false if the path is not one of these queries */
    async answer(path: string, query: URLSearchParams, response: ServerResponse) {
      const question = questions.get(path);
      if (question === undefined) return false;
      const subjects = subjectsOf(question);
      const subject = subjects.find((each) => query.has(each)) ?? subjects[0]!;
      const name = query.get(subject) ?? '';
      const { pattern, expected } = SUBJECTS[subject];
      if (!pattern.test(name)) {
        sendText(response, 400, `${subject}=${name.slice(0, 80)}: expected ${expected}`);
      } else if (busy.has(path)) {
        response.setHeader('retry-after', '1');
        sendText(response, 503, 'busy with a request of another page; try again in a second');
      } else {
        busy.add(path);
        const answered = await question[subject]!(name).finally(() => busy.delete(path));
        if ('why' in answered) sendText(response, 502, answered.why);
        else send(response, 200, 'application/json', JSON.stringify(answered.answer));
      }
      return true;
    },
  };
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
function explanationOf(pod: string, document: unknown, now: number): ExtenderExplanation | undefined {
  const { data } = extenderAnswer.safeParse(document);
  if (data === undefined) return undefined;
  const { reservation, decisions } = data;
  const verdicts = [...groupBy(data.nodes.map(worded), ({ text }) => text).values()];
  const groups = verdicts
    .map((members) => ({ group: groupOf(members), members }))
    .sort(({ group: a }, { group: b }) => rank(a) - rank(b) || b.nodes - a.nodes);
  const nodes = groups.flatMap(({ members }, index) =>
    members.map(({ node, text, detail }) => [node, index, detail === text ? '' : detail] as const),
  );
  return {
    pod,
    time: new Date(now).toISOString(),
    reserved: reservation?.kind === 'tentative' ? Object.keys(reservation.nodes) : [],
    lastCall: decisions.at(-1),
    groups: groups.map(({ group }) => group),
    nodes: nodes.sort(byText(([node]) => node)),
  };
}

function groupOf(members: readonly ReturnType<typeof worded>[]): VerdictGroup {
  const { fits, kind, text } = members[0]!;
  const shortages = members.flatMap(({ missing }) => missing ?? []);
  const missing = shortages.length === 0 ? undefined : Math.min(...shortages);
  return { fits, kind, text, nodes: members.length, missing };
}

/** Order of groups. A node with a shortage is closer than one without the network, whatever their number. */
function rank({ fits, missing, kind }: VerdictGroup): number {
  if (fits) return 0;
  if (missing !== undefined) return 1;
  return (NEVER_MEANT as readonly string[]).includes(kind) ? 3 : 2;
}

function worded(verdict: z.infer<typeof extenderVerdict>) {
  if (!verdict.fits) return verdict;
  const { node, score, cpus, numaNodes, warnings } = verdict;
  const where = cpus === '' ? 'its kubelet cannot be predicted' : `CPUs ${cpus} on NUMA node ${numaNodes.join(', ')}`;
  const detail = [`score ${score ?? '?'}: ${where}`, ...warnings].join('; ');
  return { node, fits: true, kind: 'fits', text: 'could run it now', missing: undefined, detail };
}
