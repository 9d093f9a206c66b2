import type { PodItem } from '../data/store.ts';
import { changes, ready, store } from '../state/state.ts';
import { Ago } from './ago.tsx';
import { Detail } from './detail.tsx';
import { History } from './history.tsx';
import { NodeByNode } from './node-by-node.tsx';
import { wantsOf, whyOf } from './waiting-list.tsx';

/** Why one pod waits: the scheduler's last attempt, and the current answer for every node. */
export function PodDetail({ name }: { readonly name: string }) {
  changes.value;
  const pod = store.podNamed(name);
  const title = pod?.vm === undefined ? name : `${pod.namespace}/${pod.vm}`;
  return (
    <Detail title={title} kind={pod?.vm === undefined ? 'Pod' : 'VM'} back={{ list: 'waiting' }}>
      {pod === undefined ? (
        <p>{ready.value ? 'This pod no longer waits: it was placed or deleted.' : 'Loading …'}</p>
      ) : (
        <Facts pod={pod} />
      )}
      {pod !== undefined && (
        <p class="about">
          For remedies, including kube-scheduler’s own checks, run: <code>kubectl plumbline explain pod {name}</code>
        </p>
      )}
      <NodeByNode pod={name} reason={pod?.unscheduled} gone={pod === undefined} />
      {pod?.vm !== undefined && <History of="vm" name={title} />}
    </Detail>
  );
}

function Facts({ pod }: { readonly pod: PodItem }) {
  const { namespace, name, vm, since } = pod;
  return (
    <>
      <p class="problem">{whyOf(pod)}</p>
      <dl class="facts">
        {vm !== undefined && (
          <div>
            <dt>Launcher</dt>
            <dd>
              {namespace}/{name}
            </dd>
          </div>
        )}
        <div>
          <dt>Wants</dt>
          <dd>{wantsOf(pod)}</dd>
        </div>
        {since !== undefined && (
          <div>
            <dt>Waits for</dt>
            <dd>
              <Ago time={since} />
            </dd>
          </div>
        )}
      </dl>
    </>
  );
}
