import { useState } from 'preact/hooks';
import { countWords, numberText } from '../data/shape.ts';
import { type PodItem, podName } from '../data/store.ts';
import type { ExtenderExplanation } from '../data/wire.ts';
import { dataOf, useAnswer } from '../state/ask.ts';
import { changes, ready, store, vms } from '../state/state.ts';
import { Ago } from './ago.tsx';
import { AnswerSection, Detail, type Fact, Facts, Link } from './detail.tsx';
import { History } from './history.tsx';
import { DiagnosisDetails, useDiagnosis } from './remedies.tsx';
import { requestsOf } from './vm-list.tsx';

const leftText = (node: string | undefined) =>
  node ? `It was placed on ${node}.` : 'This pod no longer waits: it was placed or deleted.';

export function PodDetail({ name }: { readonly name: string }) {
  changes.value;
  const pod = store.podNamed(name);
  const launcher = pod && podName(pod);
  const answer = useDiagnosis(pod?.noLauncher ? 'vm' : 'pod', launcher, pod?.unscheduled);
  const started = pod === undefined ? vms.value.find((vm) => vm.name === name) : undefined;
  const kind = pod?.vm === undefined && started === undefined ? 'Pod' : 'VM';
  const title = pod?.key ?? name;
  const { text, verdict } = dataOf(answer) ?? pod ?? {};
  return (
    <Detail title={title} kind={kind} back={{ list: 'waiting' }}>
      {pod === undefined ? (
        <p>
          {ready.value ? leftText(started?.node) : 'Loading …'}{' '}
          {started && (
            <Link list="vms" chosen={name}>
              Its state now
            </Link>
          )}
        </p>
      ) : (
        <>
          <p class={verdict === 'broken' ? 'problem' : 'problem is-mild'}>{text}</p>
          {pod.unscheduled && text !== pod.unscheduled && (
            <details class="about scheduler-message">
              <summary>kube-scheduler’s message</summary>
              {pod.unscheduled}
            </details>
          )}
          <DiagnosisDetails answer={answer} remedies={pod.remedies ?? []} />
          <Facts facts={factsOf(pod)} />
        </>
      )}
      {!pod?.noLauncher && <NodeByNode pod={launcher} noun={kind} reason={pod?.unscheduled} />}
      {pod?.vm !== undefined && <History of="vm" name={title} above={text} />}
    </Detail>
  );
}

function factsOf({ namespace, name, vm, since, ...pod }: PodItem): Fact[] {
  const facts: Fact[] = [];
  const launcher = pod.noLauncher ? 'none: KubeVirt has not created it' : `${namespace}/${name}`;
  if (vm !== undefined) facts.push(['Launcher', launcher]);
  if (!pod.noLauncher) facts.push(['Requests', requestsOf(pod)]);
  if (since !== undefined) facts.push(['Waiting for', <Ago key="since" time={since} />]);
  return facts;
}

interface NodeByNodeProps {
  readonly pod: string | undefined;
  readonly noun: 'VM' | 'Pod';
  readonly reason: string | undefined;
}

function NodeByNode({ pod, noun, reason }: NodeByNodeProps) {
  const url = pod === undefined ? undefined : `/explain?pod=${encodeURIComponent(pod)}`;
  const answer = useAnswer<ExtenderExplanation>(url, reason);
  if (pod === undefined && answer === undefined) return null;
  return (
    <AnswerSection
      id="node-by-node"
      title="Node by node, now"
      answer={answer}
      asking="Asking the extender about every node …"
    >
      {(explanation) => (
        <>
          <LastCall explanation={explanation} noun={noun} />
          <Groups explanation={explanation} />
        </>
      )}
    </AnswerSection>
  );
}

type LastCallProps = Pick<NodeByNodeProps, 'noun'> & { readonly explanation: ExtenderExplanation };

function LastCall({ explanation, noun }: LastCallProps) {
  const { lastCall, reserved: promised, nodes } = explanation;
  if (lastCall === undefined) return null;
  const { time, offered, passed } = lastCall;
  return (
    <p class="about">
      kube-scheduler last asked the extender <Ago time={time} /> ago, about the {countWords(offered, 'node')} of{' '}
      {numberText(nodes.length)} that its own filters had left; {passedText(offered, passed)} the{' '}
      {noun === 'VM' ? noun : 'pod'}.{promised.length > 0 && ` Reserved for it: ${promised.join(', ')}.`}
    </p>
  );
}

function passedText(offered: number, passed: number): string {
  if (offered === 1) return passed === 1 ? 'it could run' : 'it could not run';
  return `${passed === 0 ? 'none' : numberText(passed)} of them could run`;
}

function Groups({ explanation }: { readonly explanation: ExtenderExplanation }) {
  const all = explanation.nodes.length;
  if (all === 0) return <p>The extender does not know any node.</p>;
  return (
    <ol class="groups">
      {explanation.groups.map((group, index) => (
        <li key={group.text}>
          <details open={index === 0}>
            <summary>
              <span class={group.fits ? 'badge is-good' : 'badge is-bad'}>{numberText(group.nodes)}</span>
              <span class="group-text">
                {group.text}
                {group.missing !== undefined && (
                  <span class="about">the closest lacks {countWords(group.missing, 'CPU')}</span>
                )}
              </span>
              <span class="share-text about">
                {numberText(group.nodes)} of {countWords(all, 'node')}
                <progress class="share" max={all} value={group.nodes} aria-hidden="true" />
              </span>
            </summary>
            <GroupNodes explanation={explanation} index={index} />
          </details>
        </li>
      ))}
    </ol>
  );
}

const MAX_NODE_ROWS = 40;

function GroupNodes({ explanation, index }: { readonly explanation: ExtenderExplanation; readonly index: number }) {
  const [text, setText] = useState('');
  const groupNodes = explanation.nodes.filter(([, group]) => group === index);
  const matching = groupNodes.filter(([node]) => node.includes(text.trim()));
  return (
    <>
      {groupNodes.length > MAX_NODE_ROWS && (
        <label class="search">
          <span class="unseen">Search these nodes</span>
          <input
            type="search"
            placeholder={`Search ${numberText(groupNodes.length)} nodes`}
            value={text}
            onInput={({ currentTarget }) => setText(currentTarget.value)}
          />
        </label>
      )}
      <ul class="group-nodes">
        {matching.slice(0, MAX_NODE_ROWS).map(([node, , detail]) => (
          <li key={node}>
            <Link list="nodes" chosen={node} />
            {detail !== '' && <span class="about">{detail}</span>}
          </li>
        ))}
      </ul>
      {matching.length > MAX_NODE_ROWS && (
        <p class="about">and {numberText(matching.length - MAX_NODE_ROWS)} more; search to narrow the list</p>
      )}
    </>
  );
}
