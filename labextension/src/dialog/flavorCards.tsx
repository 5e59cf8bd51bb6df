/** The choice of a flavor, as cards, and of one of its devices. */
import type { TranslationBundle } from '@jupyterlab/translation';
import { type ReactElement, useId } from 'react';

import type { Catalog, Device, Flavor } from '../api';
import {
  type Isolation,
  listDevices,
  unavailableReason
} from '../jobs/catalog';
import { catalogText } from '../ui/catalogText';
import { formatDuration, formatMemory, parseCpus } from '../ui/format';
import { explainUnavailable } from '../ui/serverText';
import { devicesOf } from './places';
import { Folded, type ModelProps } from './section';

/** The flavors as radio buttons that look like cards. */
export function FlavorCards({ model }: ModelProps): ReactElement {
  const { catalog, trans } = model;
  return (
    <fieldset
      className="jp-ToJobDialog-choice"
      role={model.sweep.several === null ? 'radiogroup' : 'group'}
    >
      <legend>{trans.__('Flavor: how much it gets')}</legend>
      {catalog === null ? (
        <div className="jp-ToJobDialog-cards">
          <div
            className="jp-ToJobDialog-card jp-mod-empty"
            aria-hidden="true"
          />
        </div>
      ) : (
        <AllCards model={model} catalog={catalog} />
      )}
    </fieldset>
  );
}

/** The flavors that can be chosen, and behind a word those that cannot. */
function AllCards({ model, catalog }: Omit<CardProps, 'name'>): ReactElement {
  const [available, unavailable] = partition(
    Object.keys(catalog.flavors),
    name => unavailableReason(catalog, name) === null
  );
  const cards = (names: string[]) => (
    <div className="jp-ToJobDialog-cards">
      {names.map(name => (
        <FlavorCard key={name} model={model} catalog={catalog} name={name} />
      ))}
    </div>
  );
  const count = unavailable.length;
  return available.length === 0 || count === 0 ? (
    cards([...available, ...unavailable])
  ) : (
    <>
      {cards(available)}
      <Folded
        label={model.trans._n(
          '%1 more is not available here',
          '%1 more are not available here',
          count
        )}
      >
        {cards(unavailable)}
      </Folded>
    </>
  );
}

function partition<T>(items: T[], isFirst: (item: T) => boolean): [T[], T[]] {
  return [items.filter(isFirst), items.filter(item => !isFirst(item))];
}

type CardProps = ModelProps & { catalog: Catalog; name: string };

function FlavorCard({ model, catalog, name }: CardProps): ReactElement {
  const { trans } = model;
  const flavor = catalog.flavors[name]!;
  const { several } = model.sweep;
  const isChosen = several?.hasFlavor(name) ?? model.flavor === name;
  const unavailable = unavailableReason(catalog, name);
  const id = useId();
  const reason =
    unavailable === ''
      ? trans.__('Not for you.')
      : unavailable && explainUnavailable(unavailable, trans);
  const classes = [
    'jp-ToJobDialog-card',
    isChosen && 'jp-mod-selected',
    reason !== null && 'jp-mod-unavailable'
  ];
  return (
    <label className={classes.filter(Boolean).join(' ')}>
      <input
        type={several === null ? 'radio' : 'checkbox'}
        name="jp-ToJobDialog-flavor"
        value={name}
        checked={isChosen && reason === null}
        disabled={reason !== null}
        onChange={() =>
          several === null
            ? model.chooseFlavor(name)
            : model.change(() => several.toggleFlavor(name))
        }
        aria-labelledby={`${id}-title ${id}-facts`}
        aria-describedby={`${id}-rest`}
      />
      <span id={`${id}-title`} className="jp-ToJobDialog-title">
        {catalogText(flavor.title, trans) || name}
      </span>
      <span id={`${id}-facts`} className="jp-ToJobDialog-facts">
        {amountsText(flavor, trans)}
      </span>
      <CardWords
        id={`${id}-rest`}
        flavor={flavor}
        reason={reason}
        trans={trans}
      />
    </label>
  );
}

type WordsProps = {
  id: string;
  flavor: Flavor;
  /** Why the flavor cannot be chosen; null - it can. */
  reason: string | null;
  trans: TranslationBundle;
};

/** The words of a card: its time limit, and its description or why it cannot be chosen. */
function CardWords({ id, flavor, reason, trans }: WordsProps): ReactElement {
  return (
    <span id={id} className="jp-ToJobDialog-words">
      {flavor.max_runtime !== null && (
        <span className="jp-ToJobDialog-facts">
          {trans.__('At most %1', formatDuration(flavor.max_runtime, trans))}
        </span>
      )}
      {reason !== null ? (
        <span className="jp-ToJobDialog-reason">{reason}</span>
      ) : (
        <span className="jp-ToJobDialog-help">
          {catalogText(flavor.description, trans)}
        </span>
      )}
    </span>
  );
}

/** The resources of a flavor, in one line. */
function amountsText(flavor: Flavor, trans: TranslationBundle): string {
  const amount = parseCpus(flavor.cpu);
  return [
    trans._n('%2 CPU', '%2 CPUs', amount, amount),
    formatMemory(flavor.memory),
    flavor.gpus > 0 && trans._n('%1 GPU', '%1 GPUs', flavor.gpus)
  ]
    .filter(Boolean)
    .join(' · ');
}

/** The devices of the chosen flavors; a single one is shown without a button. */
export function DeviceChoice({ model }: ModelProps): ReactElement | null {
  const { catalog, trans } = model;
  const { several } = model.sweep;
  if (catalog === null) {
    return null;
  }
  const devices = devicesToChoose(model, catalog);
  const isChoice = devices.length > 1;
  const [present, absent] = partition(
    devices,
    ([, device]) => !isAbsent(device)
  );
  const options = (some: typeof devices) =>
    some.map(([name, device]) => (
      <DeviceOption
        key={name}
        model={model}
        name={name}
        device={device}
        isChoice={isChoice}
      />
    ));
  const role = several === null ? 'radiogroup' : 'group';
  return devices.length === 0 ? null : (
    <fieldset
      className="jp-ToJobDialog-choice"
      role={isChoice ? role : undefined}
    >
      <legend>{trans.__('Device: which kind it runs on')}</legend>
      {options(present.length > 0 ? present : absent)}
      {present.length > 0 && absent.length > 0 && (
        <Folded
          isOpen={absent.some(([name]) => name === model.device) || undefined}
          label={trans._n(
            '%1 more is not available here',
            '%1 more are not available here',
            absent.length
          )}
        >
          {options(absent)}
        </Folded>
      )}
    </fieldset>
  );
}

/** The devices of the chosen flavor, or of all chosen ones. */
function devicesToChoose(model: ModelProps['model'], catalog: Catalog) {
  const places = model.sweep.several?.list(catalog);
  return places === undefined
    ? listDevices(catalog, model.flavor)
    : devicesOf(
        catalog,
        places.map(({ flavor }) => flavor)
      );
}

type DeviceProps = ModelProps & {
  name: string;
  device: Device;
  isChoice: boolean;
};

function DeviceOption(props: DeviceProps): ReactElement {
  const { model, name, device, isChoice } = props;
  const { trans } = model;
  const { title, description } = device;
  const id = useId();
  const free = freeText(device, trans);
  const twin = model.catalog?.devices[device.same_as ?? ''];
  const details = [
    twin &&
      trans.__(
        'Here the same cards as %1.',
        catalogText(twin.title, trans) || device.same_as
      ),
    catalogText(description, trans),
    device.isolation && isolationText(device.isolation, trans)
  ];
  return (
    <label className="jp-ToJobDialog-device">
      {isChoice && (
        <DeviceInput
          model={model}
          name={name}
          labelId={`${id}-title`}
          detailsId={`${id}-rest`}
        />
      )}
      <span>
        <span id={`${id}-title`} className="jp-ToJobDialog-title">
          {catalogText(title, trans) || name}
        </span>
        <span id={`${id}-rest`}>
          {free !== null && <span className="jp-ToJobDialog-free">{free}</span>}
          {details.filter(Boolean).map(text => (
            <span key={text} className="jp-ToJobDialog-help">
              {text}
            </span>
          ))}
        </span>
      </span>
    </label>
  );
}

type DeviceInputProps = ModelProps & {
  name: string;
  labelId: string;
  detailsId: string;
};

/** The button of a device: one of them is chosen, or several. */
function DeviceInput(props: DeviceInputProps): ReactElement {
  const { model, name, labelId, detailsId } = props;
  const { catalog, sweep } = model;
  const several = catalog === null ? null : sweep.several;
  const common = {
    name: 'jp-ToJobDialog-device',
    value: name,
    'aria-labelledby': labelId,
    'aria-describedby': detailsId
  };
  return several === null ? (
    <input
      {...common}
      type="radio"
      checked={model.device === name}
      onChange={() => model.chooseDevice(name)}
    />
  ) : (
    <input
      {...common}
      type="checkbox"
      checked={several.list(catalog!).some(({ device }) => device === name)}
      disabled={several.isFixed(name, catalog!)}
      onChange={() => model.change(() => several.toggleDevice(name, catalog!))}
    />
  );
}

/** Whether there is none of a device, and none is added when jobs wait. */
function isAbsent({ total, autoscaled }: Device): boolean {
  return total === 0 && !autoscaled;
}

/** How many units of a device are free; null if nothing is known. */
export function freeText(
  { free, total, autoscaled }: Device,
  trans: TranslationBundle
): string | null {
  if (total !== null) {
    return free === null
      ? trans.__('%1 in all', total)
      : trans.__('%1 of %2 free now', free, total);
  }
  if (!autoscaled) {
    return null;
  }
  return free === null
    ? trans.__('More are added when needed')
    : trans.__('%1 free now, more are added when needed', free);
}

function isolationText(kind: Isolation, trans: TranslationBundle): string {
  switch (kind) {
    case 'full':
      return trans.__('All of it is yours while the job runs.');
    case 'hardware':
      return trans.__(
        'A part of a GPU that the hardware itself keeps apart from its neighbours.'
      );
    case 'software':
      return trans.__(
        'Shares the GPU with others: software keeps you to your share (software isolation).'
      );
    case 'none':
      return trans.__(
        'Shares the GPU with others and nothing keeps you apart: memory and speed depend on them.'
      );
  }
}
