import { isPausedAtStart, parsePausedStart } from '../launcher/paused-start.ts';
import { PAUSED_START_ANNOTATION } from '../names.ts';
import type { InstanceFacts } from './facts.ts';

/** Fields of a VMI that show whether its guest is paused. */
export interface PausableInstance {
  readonly metadata: { readonly annotations?: Readonly<Record<string, string>> | undefined };
  readonly status?:
    | {
        readonly conditions?:
          | readonly {
              readonly type: string;
              readonly status: string;
              readonly reason?: string | null | undefined;
              readonly lastTransitionTime?: string | null | undefined;
            }[]
          | null
          | undefined;
      }
    | null
    | undefined;
}

/**
 * The current pause of a guest, from KubeVirt's condition Paused; undefined while it is not paused. The text is the
 * condition's reason: its message has the same content and no length limit.
 */
export function pauseOf({ metadata, status }: PausableInstance): InstanceFacts['pause'] {
  const found = status?.conditions?.find((one) => one.type === 'Paused' && one.status === 'True');
  if (found === undefined) return undefined;
  const [reason, since] = [found.reason ?? '', found.lastTransitionTime ?? ''];
  const record = parsePausedStart(metadata.annotations?.[PAUSED_START_ANNOTATION]);
  return { atStart: isPausedAtStart(record, { reason, since }), text: reason };
}
