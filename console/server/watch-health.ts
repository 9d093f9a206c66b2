import { type KubeClient, KubeError } from '../../kube/client.ts';
import { cacheProblem, type Reflector } from '../../kube/reflector.ts';
import type { Status } from '../data/wire.ts';
import { isOptional, type Kind, type OptionalKind } from './kinds.ts';

const MAX_PROBLEM_CHARACTERS = 200;

type Watch = readonly [kind: string, reflector: Pick<Reflector<unknown>, 'synced' | 'lastHeard' | 'items'>];

/** Agents and the scheduler renew their Leases every few seconds: without any news the API server hangs. */
const MAX_SILENCE_SECONDS = 15;

function silenceOf(watches: readonly Watch[], nowSeconds: number): string | undefined {
  const expectsNews = watches.some(([kind, { items }]) => kind === 'leases' && items.size > 0);
  const newest = Math.max(...watches.map(([, { lastHeard = Number.NEGATIVE_INFINITY }]) => lastHeard));
  return expectsNews && nowSeconds - newest > MAX_SILENCE_SECONDS ? 'the API server sends no news' : undefined;
}

/** Since when the data of the watches may be old. @param problems the failed request of each kind */
export function createStaleness(problems: ReadonlyMap<Kind, string>, nowSeconds: () => number) {
  /** When the API server was last heard before the current problem, RFC 3339. */
  let since: string | undefined;
  return {
    problem(watches: readonly Watch[]): Status['problem'] {
      const late = () => silenceOf(watches, nowSeconds()) ?? cacheProblem(Object.fromEntries(watches), nowSeconds());
      const isComplete = watches.every(([, { synced }]) => synced);
      const why = [...new Set(problems.values())].join('; ') || (isComplete ? late() : undefined);
      if (why === undefined) {
        since = undefined;
        return undefined;
      }
      const oldestMessage = Math.min(...watches.map(([, { lastHeard = nowSeconds() }]) => lastHeard));
      // Computed once, so that the record of the status does not change while the problem lasts.
      since ??= new Date(Date.now() - (nowSeconds() - oldestMessage) * 1000).toISOString();
      return [since, why];
    },
  };
}

/** Records the last failure of a kind until a success: a 403 of an optional one in `forbidden`, else in `problems`. */
export function noting(
  client: KubeClient,
  kind: Kind,
  problems: Map<Kind, string>,
  forbidden: Set<OptionalKind>,
): KubeClient {
  const noted = async <T>(call: Promise<T>): Promise<T> => {
    try {
      const answer = await call;
      problems.delete(kind);
      if (isOptional(kind)) forbidden.delete(kind);
      return answer;
    } catch (error) {
      const status = error instanceof KubeError ? error.status : undefined;
      // A kind that this cluster does not have counts as a kind without objects.
      const isKnown = isOptional(kind) && (status === 403 || status === 404);
      if (isKnown) problems.delete(kind);
      else problems.set(kind, `${kind}: ${(error as Error).message}`.slice(0, MAX_PROBLEM_CHARACTERS));
      if (isKnown && status === 403) forbidden.add(kind);
      else if (isKnown) forbidden.delete(kind);
      throw error;
    }
  };
  return {
    ...client,
    get: (path, options) => noted(client.get(path, options)),
    watch: (path, options) => noted(client.watch(path, options)),
  };
}
