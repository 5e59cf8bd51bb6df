/** What a page may change while the pointer is pressed: nothing, until it is released. */
import { PressGate } from '../src/ui/press';

/** An event of the pointer, which jsdom does not have. */
function pointer(type: string, fields: object = {}): Event {
  return Object.assign(new Event(type), { button: 0, buttons: 1, ...fields });
}

function gate() {
  const events = new EventTarget();
  const done: string[] = [];
  const update = () => void done.push('updated');
  return { events, done, update, press: new PressGate(events) };
}

describe('PressGate', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  it('holds what comes until the click is over, and does it once', () => {
    const { events, done, update, press } = gate();
    press.run(update);
    expect(done).toHaveLength(1);
    events.dispatchEvent(pointer('pointerdown'));
    press.run(update);
    press.run(update);
    events.dispatchEvent(pointer('pointerup'));
    events.dispatchEvent(new Event('click'));
    expect(done).toHaveLength(1);
    press.run(() => done.push('by the click'));
    expect(done).toEqual(['updated', 'by the click']);
    jest.runAllTimers();
    expect(done).toEqual(['updated', 'by the click', 'updated']);
  });

  it.each([
    ['a key', new Event('keydown')],
    ['a cancelled press', pointer('pointercancel')],
    ['a move without a button', pointer('pointermove', { buttons: 0 })],
    ['another window', new Event('blur')]
  ])('is opened by %s', (_, event) => {
    const { events, done, update, press } = gate();
    events.dispatchEvent(pointer('pointerdown'));
    press.run(update);
    events.dispatchEvent(pointer('pointermove'));
    jest.runAllTimers();
    expect(done).toEqual([]);
    events.dispatchEvent(event);
    jest.runAllTimers();
    expect(done).toEqual(['updated']);
  });

  it('is closed by the main button only, and forgets', () => {
    const { events, done, update, press } = gate();
    events.dispatchEvent(pointer('pointerdown', { button: 2 }));
    press.run(update);
    expect(done).toHaveLength(1);
    events.dispatchEvent(pointer('pointerdown'));
    press.run(update);
    press.forget(update);
    events.dispatchEvent(pointer('pointerup'));
    jest.runAllTimers();
    expect(done).toHaveLength(1);
  });
});
