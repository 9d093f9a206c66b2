import type { PodResourcesClient } from '../../kube/kubelet-api/pod-resources-client.ts';
import { errorText, few } from '../../model/errors.ts';
import { sleep, underSignals } from '../../runtime/time.ts';
import type { ListedContainer } from '../assignments/listed-containers.ts';
import type { AgentLogger } from '../telemetry/log-messages.ts';
import { containerNames, holderOf } from './allocation-checker.ts';
import type { BeforeStart } from './plugin-server.ts';

/** Deadline in seconds for the kubelet's answer, number of attempts, and seconds between them. */
const ASK_DEADLINE_SECONDS = 2;
const MAX_ASK_TRIES = 3;
const ASK_PAUSE = 0.1;
/** Maximum number of devices in a log line, and of characters for each id. */
const MAX_NAMED_DEVICES = 8;
const MAX_ID_CHARACTERS = 80;

export type StartCheck = (
  resource: string,
  holder: ListedContainer | undefined,
  signal: AbortSignal,
) => Promise<string | undefined>;

export interface BeforeStartDeps {
  readonly podResources: Pick<PodResourcesClient, 'list'>;
  /** Checks the allocation and vacates the CPUs. @returns why the container must not start, or undefined */
  readonly check: StartCheck;
  readonly answerWithin: number;
  readonly onOutcome: (resource: string, outcome: 'passed' | 'refused' | 'unanswered') => void;
  readonly log: AgentLogger;
}

/** A check that does not end in time lets the container start: an agent that hangs must not block pods. */
export function beforeStartCheck(deps: BeforeStartDeps): BeforeStart {
  const { check, answerWithin, onOutcome, log } = deps;
  return async (resource, deviceIds, signal) => {
    const holder = await findHolder(deps, resource, deviceIds, signal);
    const names = holder && containerNames(holder);
    const answer = await underSignals([signal], undefined, (checking) =>
      Promise.race([
        check(resource, holder, checking)
          .catch(errorText)
          .then((refusal) => ({ refusal })),
        sleep(answerWithin, checking).then(() => undefined),
      ]),
    );
    if (answer === undefined) {
      const fields = { ...names, resource, deadlineSeconds: answerWithin };
      log.error(fields, 'agent timed out; starting the container before its CPUs were clear');
      return onOutcome(resource, 'unanswered');
    }
    const { refusal } = answer;
    onOutcome(resource, refusal === undefined ? 'passed' : 'refused');
    if (refusal === undefined) return;
    const devices = few(deviceIds, MAX_NAMED_DEVICES, MAX_ID_CHARACTERS);
    log.warn({ ...names, resource, devices, reason: refusal }, 'container start refused');
    throw new Error(refusal);
  };
}

async function findHolder(
  { podResources, log }: Pick<BeforeStartDeps, 'podResources' | 'log'>,
  resource: string,
  ids: readonly string[],
  signal: AbortSignal,
): Promise<ListedContainer | undefined> {
  for (let tries = 1; ; tries++) {
    try {
      return holderOf(await podResources.list({ signal, deadlineSeconds: ASK_DEADLINE_SECONDS }), resource, ids);
    } catch (err) {
      if (tries === MAX_ASK_TRIES || signal.aborted) {
        const devices = few(ids, MAX_NAMED_DEVICES, MAX_ID_CHARACTERS);
        log.warn({ err, resource, devices }, 'allocation check skipped: owner unknown');
        return undefined;
      }
      await sleep(ASK_PAUSE * tries, signal);
    }
  }
}
