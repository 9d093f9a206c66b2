import { CpuSet } from '../../model/cpu-set.ts';
import { cpuSlots, DPU_TEXT, type NodeItem, Paint, PROBLEM_TEXT } from '../data/node.ts';
import { cellsOf, type Shape, type ShapeCell } from '../data/shape.ts';
import { GONE, type NodeProblem, type SwitchPicture } from '../data/wire.ts';
import { dataOf, type ServerAnswer, useAnswer } from '../state/ask.ts';
import { changes, ready, store, vms } from '../state/state.ts';
import { Ago, DataAge, timeText } from './ago.tsx';
import { CpuMap, markOf, ownersOf, paintName } from './cpu-map.tsx';
import { AnswerSection, CpuList, Detail, type Fact, Facts, Link, Paragraphs, Table } from './detail.tsx';
import { DrainPreview } from './drain.tsx';
import { History } from './history.tsx';
import { Remedies } from './remedies.tsx';

const SWITCH_REFRESH_MILLISECONDS = 10_000;
const AGENT_SILENT = { failed: 'Not available: the agent is silent.' } as const;

/** A dead DPU has a separate section with the VMs that depend on it. */
const isSaidHere = (problem: NodeProblem) => problem !== 'dpu-dead';

export function NodeDetail({ name }: { readonly name: string }) {
  changes.value;
  const node = store.nodes.get(name);
  // On the host of a DPU, Open vSwitch runs on the DPU; a node without a report has no agent to ask.
  const hasSwitch = node?.shape !== undefined && node.dpu === '';
  const isSilent = node?.problems.includes('silent') === true;
  const switchUrl = hasSwitch && !isSilent ? `/switch?node=${encodeURIComponent(name)}` : undefined;
  const answer = useAnswer<SwitchPicture>(switchUrl, undefined, SWITCH_REFRESH_MILLISECONDS);
  const moved = isSilent ? AGENT_SILENT : answer;
  return (
    <Detail title={name} kind="Node" back={{ list: 'nodes' }}>
      {node === undefined ? (
        <p>{ready.value ? `There is no node ${name}.` : 'Loading …'}</p>
      ) : (
        <>
          {node.problems.filter(isSaidHere).map((problem) => (
            <p key={problem} class="problem">
              <strong>{PROBLEM_TEXT[problem].short}.</strong> {PROBLEM_TEXT[problem].long}
            </p>
          ))}
          <DataAge since={node.silentSince} />
          {node.dpu !== '' && <Dpu node={node} />}
          <Remedies entries={node.remedies} />
          {node.shape && (
            <>
              <CpuMap node={node} shape={node.shape} switched={switchedOf(node.shape, moved)} />
              <Owners node={node} shape={node.shape} />
            </>
          )}
          {node.shape && <DrainPreview node={node} />}
          {hasSwitch && (
            <AnswerSection
              id="switch"
              title="Open vSwitch’s threads"
              answer={moved}
              asking="Asking the node’s agent …"
              failedLook="about"
            >
              {(picture) => <Threads picture={picture} />}
            </AnswerSection>
          )}
          <NodeFacts node={node} />
        </>
      )}
      <History of="node" name={name} />
    </Detail>
  );
}

function switchedOf(shape: Shape, answer: ServerAnswer<SwitchPicture>): ReadonlySet<number> | undefined {
  const { enabled = false, threads = [] } = dataOf(answer) ?? {};
  if (!enabled) return undefined;
  const ordinary = threads.filter(({ desired }) => desired !== null);
  return new Set(ordinary.flatMap(({ allowed }) => cpuSlots(shape, allowed)));
}

function Dpu({ node: { name, dpu, dpuSince } }: { readonly node: NodeItem }) {
  const there = vms.value.filter((vm) => vm.node === name);
  const [time, message] = dpuSince ?? [];
  return (
    <section class={dpu === 'dead' ? 'dpu problem' : 'dpu'} aria-label="DPU">
      <p>
        <strong>DPU {DPU_TEXT[dpu]}</strong>
        {time !== undefined && (
          <>
            {' '}
            since {timeText(time)} (<Ago time={time} />)
          </>
        )}
        {message ? `: ${message}` : ''}
        {dpu === 'dead' && '. Pods that need it are placed on other nodes.'}
      </p>
      {there.length > 0 && (
        <p>
          {dpu === 'dead' ? 'Their network does not work' : 'Their network depends on it'}:{' '}
          {there.map((vm, index) => (
            <>
              {index > 0 && ', '}
              <Link key={vm.key} list="vms" chosen={vm.name} />
            </>
          ))}
        </p>
      )}
    </section>
  );
}

const MARK = <span class="unseen">Mark</span>;

const cellIds = (cells: readonly ShapeCell[]) => cells.map(({ id }) => id).join(', ');

function Owners({ node, shape }: { readonly node: NodeItem; readonly shape: Shape }) {
  const cpusOf = (slots: readonly number[]) => `${CpuSet.of(slots.map((slot) => shape.slots[slot]!.cpu))}`;
  return (
    <Table caption="Owners of CPUs" isCaptionSeen look="owners" heads={[MARK, 'Who', 'CPUs', 'Cores', 'NUMA']}>
      {ownersOf(node, shape).map(({ paint, who, about, slots, padded }, index) => (
        <tr key={`${who}-${index}`}>
          <td>
            <span class={`swatch ${paintName(node, paint)}`}>{markOf(node, paint)}</span>
          </td>
          <th scope="row">
            {paint >= Paint.owner && !who.endsWith(GONE) ? <Link list="vms" chosen={who} /> : who}
            {about !== '' && <span class="about">{about}</span>}
            {padded.length > 0 && (
              <span class="about">
                <span class={`swatch is-small is-padding ${paintName(node, paint)}`} aria-hidden="true" />{' '}
                {padded.length} added for whole cores: CPU {cpusOf(padded)}
              </span>
            )}
          </th>
          <td class="cpus">
            <CpuList cpus={cpusOf(slots)} />
          </td>
          <td class="number">{new Set(slots.map((slot) => shape.slots[slot]!.core)).size}</td>
          <td class="number">{cellIds(cellsOf(shape, slots))}</td>
        </tr>
      ))}
    </Table>
  );
}

function Threads({ picture: { enabled, desired, problems, threads } }: { readonly picture: SwitchPicture }) {
  return (
    <>
      <p class="about">
        {enabled
          ? `The agent restricts ordinary threads to CPUs ${desired ?? 'without an owner'}. The CPUs where they may run now are outlined above.`
          : 'The agent does not move them: its enabler file is missing or empty.'}
      </p>
      <Paragraphs texts={problems} look="problem" />
      {threads.length === 0 ? (
        <p>No Open vSwitch daemon runs on this node.</p>
      ) : (
        <Table caption="Threads of Open vSwitch" heads={['Threads', 'Allowed CPUs', 'State']}>
          {threads.map((thread) => (
            <tr key={`${thread.pid} ${thread.kind} ${thread.allowed}`}>
              <th scope="row">
                {thread.threads} × {thread.kind}
                <span class="about">
                  {thread.process}, pid {thread.pid}
                </span>
              </th>
              <td class="cpus">
                <CpuList cpus={thread.allowed} />
              </td>
              <td>{threadState(thread)}</td>
            </tr>
          ))}
        </Table>
      )}
    </>
  );
}

function threadState({ desired, allowed, note }: SwitchPicture['threads'][number]): string {
  if (desired === null) return note || 'not managed';
  return desired === allowed ? 'as configured' : `should be ${desired}: ${note}`;
}

function NodeFacts({ node: { shape, dpu, problems, resources } }: { readonly node: NodeItem }) {
  const facts: Fact[] = [...resources, ['DPU', DPU_TEXT[dpu]], ['Agent', agentState(problems, shape !== undefined)]];
  if (shape === undefined) return <Facts facts={facts} />;
  const { kubelet, policy, wholeCores, alignment, scope, isolated } = shape.content;
  const hardware: Fact[] = [
    ['Kubelet', kubelet ?? 'version unknown'],
    ['CPU manager', `${policy}${wholeCores ? ', whole cores only (full-pcpus-only)' : ''}`],
    ['Topology manager', [alignment ?? 'unknown', scope].filter(Boolean).join(', scope ')],
  ];
  if (isolated) hardware.push(['Isolated from the kernel’s scheduler', isolated]);
  if (shape.placeless.length > 0) hardware.push(['Networks with an unknown NUMA node', shape.placeless.join(', ')]);
  return <Facts facts={[...hardware, ...facts]} />;
}

function agentState(problems: readonly NodeProblem[], hasReport: boolean): string {
  if (problems.includes('silent')) return 'silent: its Lease has expired';
  return hasReport ? 'ready' : 'does not report';
}
