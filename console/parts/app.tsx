import { route } from '../state/route.ts';
import { totals, waiting } from '../state/state.ts';
import { Announcer } from './announcer.tsx';
import { Banner } from './banner.tsx';
import { Header } from './header.tsx';
import { NodeDetail } from './node-detail.tsx';
import { NodeList } from './node-list.tsx';
import { PodDetail } from './pod-detail.tsx';
import { Summary } from './summary.tsx';
import { WaitingList } from './waiting-list.tsx';

export function App() {
  const at = route.value;
  const chosen = at.list === 'nodes' ? at.node : at.pod;
  return (
    <>
      <button type="button" class="skip" onClick={skipToList}>
        Skip to the list
      </button>
      <Header />
      <Banner />
      <main class={chosen === undefined ? 'main' : 'main has-detail'}>
        <h1 class="unseen">Plumbline console</h1>
        <Summary />
        <nav class="tabs" aria-label="Lists">
          <a href="#/nodes" aria-current={at.list === 'nodes' ? 'page' : undefined}>
            Nodes <span class="count">{totals.value.nodes.toLocaleString('en')}</span>
          </a>
          <a href="#/waiting" aria-current={at.list === 'waiting' ? 'page' : undefined}>
            Waiting{' '}
            <span class={waiting.value.length > 0 ? 'count is-attention' : 'count'}>
              {waiting.value.length.toLocaleString('en')}
            </span>
          </a>
        </nav>
        <section class="list" aria-label={at.list === 'nodes' ? 'Nodes' : 'Waiting VMs and pods'}>
          {at.list === 'nodes' ? <NodeList chosen={at.node} /> : <WaitingList chosen={at.pod} />}
        </section>
        {at.list === 'nodes' && at.node !== undefined && <NodeDetail key={at.node} name={at.node} />}
        {at.list === 'waiting' && at.pod !== undefined && <PodDetail key={at.pod} name={at.pod} />}
      </main>
      <Announcer />
    </>
  );
}

function skipToList(): void {
  document.querySelector<HTMLElement>('[role="grid"]')?.focus();
}
