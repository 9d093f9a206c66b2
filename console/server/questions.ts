import type { ServerResponse } from 'node:http';
import { KubeError } from '../../kube/client.ts';
import type { SwitchPicture } from '../data/wire.ts';
import { explanationOf } from './explanation.ts';
import type { Histories } from './history.ts';

/** Queries the extender with `GET /explain?pod=namespace/name`. `why` says why there is no answer. */
export type AskExtender = (pod: string) => Promise<{ readonly answer: unknown } | { readonly why: string }>;

/** Queries the agent of a node. `why` says why there is no answer. */
export type AskSwitch = (node: string) => Promise<{ readonly answer: SwitchPicture } | { readonly why: string }>;

/** The sources for the page's queries about one node or VM. */
export interface Asked {
  readonly ask: AskExtender;
  readonly askSwitch: AskSwitch;
  readonly histories: Histories;
}

const NAMESPACED = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?\/[a-z0-9](?:[-.a-z0-9]{0,251}[a-z0-9])?$/;
const NAME = /^[a-z0-9](?:[-.a-z0-9]{0,251}[a-z0-9])?$/;

/** Parameters of which a query has one. */
const SUBJECTS = {
  pod: { pattern: NAMESPACED, expected: 'namespace/name' },
  vm: { pattern: NAMESPACED, expected: 'namespace/name' },
  node: { pattern: NAME, expected: 'the name of a node' },
} as const;
type Subject = keyof typeof SUBJECTS;

type Found = { readonly found: object } | { readonly why: string };

interface Question {
  readonly subjects: readonly Subject[];
  readonly ask: (subject: Subject, name: string) => Promise<Found>;
}

/** Handles the page's queries about one node or VM, one at a time for each kind. */
export function createQuestions({ ask, askSwitch, histories }: Asked) {
  const questions: Readonly<Record<string, Question>> = {
    '/explain': { subjects: ['pod'], ask: async (_, pod) => explained(pod, await ask(pod)) },
    '/switch': {
      subjects: ['node'],
      async ask(_, node) {
        const asked = await askSwitch(node);
        return 'why' in asked ? { why: `Cannot reach the agent: ${asked.why}` } : { found: asked.answer };
      },
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
      const subject = question.subjects.find((one) => query.has(one)) ?? question.subjects[0]!;
      const name = query.get(subject) ?? '';
      const { pattern, expected } = SUBJECTS[subject];
      if (!pattern.test(name)) {
        text(response, 400, `${subject}=${name.slice(0, 80)}: expected ${expected}`);
        return true;
      }
      if (busy.has(path)) {
        response.setHeader('retry-after', '1');
        text(response, 503, 'busy with a request of another page; try again in a second');
        return true;
      }
      busy.add(path);
      try {
        const asked = await question.ask(subject, name);
        if ('why' in asked) text(response, 502, asked.why);
        else answer(response, 200, 'application/json', JSON.stringify(asked.found));
      } finally {
        busy.delete(path);
      }
      return true;
    },
  };
}

function explained(pod: string, asked: Awaited<ReturnType<AskExtender>>): Found {
  if ('why' in asked) return { why: `Cannot reach the extender: ${asked.why}` };
  const found = explanationOf(pod, asked.answer, Date.now());
  return found === undefined ? { why: 'Cannot reach the extender: the answer is not from an extender' } : { found };
}

async function historyOf(histories: Histories, subject: Subject, name: string): Promise<Found> {
  try {
    if (subject === 'node') return { found: await histories.ofNode(name) };
    const [namespace = '', vm = ''] = name.split('/');
    return { found: await histories.ofVm(namespace, vm) };
  } catch (error) {
    if (error instanceof KubeError) return { why: `Cannot query the API server: ${error.message}` };
    throw error;
  }
}

export function text(response: ServerResponse, status: number, message: string): void {
  if (status === 405) response.setHeader('allow', 'GET');
  answer(response, status, 'text/plain; charset=utf-8', `${message}\n`);
}

export function answer(response: ServerResponse, status: number, type: string, body: string | Buffer): void {
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) });
  response.end(body);
}
