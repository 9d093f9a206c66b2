import { createHash } from 'node:crypto';
import * as z from 'zod';
import type { KubeClient } from '../../kube/client.ts';
import type { EventRecorder, EventTarget, EventText } from '../../kube/events.ts';
import { objectMeta } from '../../kube/resources.ts';
import { instanceCondition } from '../../kube/virtual-machines.ts';
import { PADDED } from '../../model/admission/cpus.ts';
import { DECISION_ANNOTATION } from '../../model/names.ts';
import type { Logger } from '../../runtime/log.ts';
import { VMI_PATH } from '../cluster/vmi-cache.ts';

/**
 * Reports the decision about a launcher in Events on its VMI. Without client certificates, any client that reaches the
 * port could send a review about any VMI, so the webhook writes nothing because of a caller's claim. It waits for
 * evidence from the API server: the launcher with exactly that decision, or KubeVirt's condition on the VMI that its
 * launcher could not be created.
 */
export interface Announcements {
  /** @param decision text of the decision annotation, which the launcher has if it was admitted */
  decided(target: EventTarget, decision: string | undefined, texts: readonly EventText[]): void;
  /** The launcher was refused. */
  refused(target: EventTarget, text: EventText): void;
  stop(): void;
}

export interface AnnouncementsOptions {
  readonly client: Pick<KubeClient, 'get'>;
  readonly events: Pick<EventRecorder, 'record'>;
  /** Whether only clients with a certificate may call. */
  readonly callersAreKnown: boolean;
  readonly log: Logger;
  /** Milliseconds after a decision at which to look for its launcher. Default 0.2, 1, 3 and 8 s. */
  readonly looks?: readonly number[];
  /** Milliseconds since 1970. */
  readonly wallClock?: () => number;
}

/** Stands for a missing decision. No annotation has this text, because a decision is JSON. */
const REFUSED = 'refused';
/** Number of decisions whose launchers are looked for; the oldest is dropped first. */
const MOST_WAITING = 256;
const MOST_ANNOUNCED = 1000;
const LOOKS = [200, 1000, 3000, 8000];
/** Number of launchers of one VMI: one, or two during a migration, and those that have ended. */
const MOST_LAUNCHERS = 20;
/** Milliseconds between a review and the creation of its launcher, with a margin for different clocks. */
const JUST_MADE = 60_000;

const pods = z.object({
  items: z.array(z.object({ metadata: objectMeta.extend({ creationTimestamp: z.string().optional() }) })).nullish(),
});

const failing = z.object({
  metadata: objectMeta.pick({ uid: true }),
  status: z
    .object({ conditions: z.array(instanceCondition.extend({ message: z.string().nullish() })).nullish() })
    .nullish(),
});

interface Waiting {
  readonly target: EventTarget;
  readonly decision: string | undefined;
  /** By text, so that a second review of the same launcher adds only new texts. */
  readonly texts: Map<string, EventText>;
}

export function createAnnouncements(options: AnnouncementsOptions): Announcements {
  const { client, events, callersAreKnown, log, looks = LOOKS, wallClock = Date.now } = options;
  /** Decisions that were announced; a launcher has one. */
  const announced = new Set<string>();
  const waiting = new Map<string, Waiting>();
  const timers = new Set<NodeJS.Timeout>();

  const isThere = async ({ target, decision }: Waiting): Promise<boolean> => {
    const path = `/api/v1/namespaces/${encodeURIComponent(target.namespace ?? '')}/pods`;
    const query = { labelSelector: `kubevirt.io/created-by=${target.uid}`, limit: MOST_LAUNCHERS };
    const { items } = pods.parse(await client.get(path, { query, timeout: 5 }));
    return (items ?? []).some(
      ({ metadata }) =>
        metadata.annotations?.[DECISION_ANNOTATION] === decision &&
        Math.abs(wallClock() - Date.parse(metadata.creationTimestamp ?? '')) < JUST_MADE &&
        metadata.ownerReferences?.some(({ uid }) => uid === target.uid),
    );
  };

  /** KubeVirt's message on the VMI about a launcher that could not be created; undefined without one. */
  const failureOf = async ({ target: { namespace = '', name, uid } }: Waiting): Promise<string | undefined> => {
    const path = `${VMI_PATH}/namespaces/${encodeURIComponent(namespace)}/virtualmachineinstances/${encodeURIComponent(name)}`;
    const { metadata, status } = failing.parse(await client.get(path, { timeout: 5 }));
    if (metadata.uid !== uid) return undefined;
    const failed = status?.conditions?.find(
      ({ type, status: state, reason }) => type === 'Synchronized' && state === 'False' && reason === 'FailedCreate',
    );
    return failed && (failed.message ?? '');
  };

  /** The texts with evidence. For a launcher that does not exist: its padding, and a refusal that KubeVirt quotes. */
  const provenTexts = async (one: Waiting): Promise<EventText[]> => {
    if (await isThere(one)) return [...one.texts.values()];
    const failure = await failureOf(one);
    if (failure === undefined) return [];
    return [...one.texts.values()].filter(({ reason, message }) => reason === PADDED || failure.includes(message));
  };

  const look = async (key: string, one: Waiting): Promise<void> => {
    if (waiting.get(key) !== one) return;
    let texts: EventText[] = [];
    try {
      texts = await provenTexts(one);
    } catch (err) {
      log.debug({ err }, 'launcher lookup failed');
    }
    if (texts.length === 0 || waiting.get(key) !== one) return;
    waiting.delete(key);
    const [oldest] = announced;
    if (announced.size >= MOST_ANNOUNCED && oldest !== undefined) announced.delete(oldest);
    announced.add(idOf(key, one.decision));
    for (const text of texts) events.record(one.target, text);
  };

  const lookLater = (key: string, one: Waiting): void => {
    const last = looks.length - 1;
    looks.forEach((wait, i) => {
      const timer = setTimeout(() => {
        timers.delete(timer);
        void look(key, one).finally(() => {
          if (i === last && waiting.get(key) === one) waiting.delete(key);
        });
      }, wait);
      timers.add(timer.unref());
    });
  };

  const expect = (target: EventTarget, decision: string | undefined, texts: readonly EventText[]): void => {
    const key = `${target.namespace}/${target.uid}${decision === REFUSED ? ' refused' : ''}`;
    if (announced.has(idOf(key, decision))) return;
    const before = waiting.get(key);
    if (before !== undefined && before.decision === decision) {
      for (const text of texts) before.texts.set(text.message, text);
      return;
    }
    const [oldest] = waiting.keys();
    if (waiting.size >= MOST_WAITING && oldest !== undefined) waiting.delete(oldest);
    const one = { target, decision, texts: new Map(texts.map((text) => [text.message, text])) };
    waiting.set(key, one);
    lookLater(key, one);
  };

  return {
    decided(target, decision, texts) {
      if (callersAreKnown) for (const text of texts) events.record(target, text);
      // Text that cannot be a uid causes no request.
      else if (texts.length > 0 && UID.test(target.uid ?? '')) expect(target, decision, texts);
    },
    refused(target, text) {
      if (callersAreKnown) events.record(target, text);
      else if (UID.test(target.uid ?? '')) expect(target, REFUSED, [text]);
    },
    stop() {
      for (const timer of timers) clearTimeout(timer);
      waiting.clear();
    },
  };
}

/** A valid value of a label selector. */
const UID = /^[A-Za-z0-9][-A-Za-z0-9._]{0,62}$/;

function idOf(key: string, decision = ''): string {
  return createHash('sha256').update(`${key} ${decision}`).digest('base64');
}
