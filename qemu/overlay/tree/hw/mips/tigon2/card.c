/*
 * The Tigon II card as a device: two CPUs, a wire, a model behind them
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qapi/error.h"
#include "hw/qdev-clock.h"
#include "hw/qdev-properties.h"
#include "qapi/visitor.h"
#include "qemu/main-loop.h"
#include "card.h"

/* Wire ------------------------------------------------------------------- */

static bool card_can_receive(NetClientState *nc)
{
    Tigon2Card *card = qemu_get_nic_opaque(nc);

    return card->ops.can_receive(card->model);
}

/* 0 leaves the frame in QEMU's queue until the card has room. */
static ssize_t card_receive(NetClientState *nc, const uint8_t *frame,
                            size_t len)
{
    Tigon2Card *card = qemu_get_nic_opaque(nc);

    return card->ops.receive(card->model, frame, len) ? len : 0;
}

static void card_link_status_changed(NetClientState *nc)
{
    Tigon2Card *card = qemu_get_nic_opaque(nc);

    card->ops.cable(card->model, !nc->link_down);
}

static NetClientInfo card_net_info = {
    .type = NET_CLIENT_DRIVER_NIC,
    .size = sizeof(NICState),
    .can_receive = card_can_receive,
    .receive = card_receive,
    .link_status_changed = card_link_status_changed,
};

/* Device ----------------------------------------------------------------- */

static void card_timer(void *opaque)
{
    Tigon2Card *card = opaque;

    card->ops.timer(card->model);
}

static void card_errands(void *opaque)
{
    Tigon2Card *card = opaque;

    card->ops.errands(card->model);
}

/*
 * By the main loop with nothing else under way.  From within a delivery to the
 * card a flush does nothing, and the delivery that ends then stops reception.
 */
static void card_offer(void *opaque)
{
    Tigon2Card *card = opaque;

    qemu_flush_queued_packets(qemu_get_queue(card->nic));
}

static void card_make_cpu(Tigon2Card *card, uint32_t index)
{
    Tigon2View *view = &card->view[index];
    g_autofree char *name = g_strdup_printf("cpu-%c", 'a' + index);
    Object *obj = object_new(TYPE_TIGON2_CPU);

    tigon2_view_init(card, index);
    view->cpu = TIGON2_CPU(obj);
    view->cpu->fault = tigon2_engine_fault;
    view->cpu->opaque = card;
    view->cpu->index = index;
    view->cpu->fetch_end = TIGON2_SCRATCH_BASE +
                           card->geometry.scratch_bytes[index];

    object_property_add_child(OBJECT(card), name, obj);
    object_property_set_link(obj, "memory", OBJECT(&view->root), &error_abort);
    object_property_set_bool(obj, "start-powered-off", true, &error_abort);
    qdev_connect_clock_in(DEVICE(obj), "clk-in", card->clock);
    qdev_realize(DEVICE(obj), NULL, &error_fatal);
    object_unref(obj);
    /* Realizing set it to where a MIPS has its boot ROM. */
    view->cpu->parent_obj.env.exception_base = 0;
}

static void card_realize(DeviceState *dev, Error **errp)
{
    Tigon2Card *card = TIGON2_CARD(dev);

    if (!tigon2_engine_load(card, errp)) {
        return;
    }
    card->clock = clock_new(OBJECT(card), "core");
    clock_set_hz(card->clock, card->geometry.core_hz);
    card->timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, card_timer, card);
    card->errands = qemu_bh_new(card_errands, card);
    card->offer = qemu_bh_new(card_offer, card);
    tigon2_memory_init(card);
    for (uint32_t i = 0; i < TIGON2_CPUS; i++) {
        card_make_cpu(card, i);
    }
    card->nic = qemu_new_nic(&card_net_info, &card->conf, TYPE_TIGON2_CARD,
                             dev->id, &dev->mem_reentrancy_guard, card);
    tigon2_engine_begin(card);
}

static void card_reset_hold(Object *obj, ResetType type)
{
    Tigon2Card *card = TIGON2_CARD(obj);

    for (int i = 0; i < TIGON2_CPUS; i++) {
        Tigon2CPU *cpu = card->view[i].cpu;

        cpu_reset(CPU(cpu));
        qatomic_set(&cpu->runs, false);
        memset(cpu->encoded, 0xff, sizeof(cpu->encoded));
    }
    card->ops.power_on(card->model);
}

/*
 * Properties of the running card, which are the model's: text for text.
 */
static const struct {
    const char *name;
    const char *description;
    bool writable;
    bool readable;
} model_properties[] = {
    { "link", "State of the link", false, true },
    { "partner", "Link partner, in words", true, true },
    { "inject", "Fault of the wire, in words", true, false },
    { "undefined", "Count of accesses that mean nothing", false, true },
    { "counts", "What went wrong or had to wait, counted", false, true },
};

static bool card_is_running(Tigon2Card *card, Error **errp)
{
    if (!card->model) {
        error_setg(errp, "the card does not run yet");
    }
    return card->model != NULL;
}

static void card_get_property(Object *obj, Visitor *v, const char *name,
                              void *opaque, Error **errp)
{
    Tigon2Card *card = TIGON2_CARD(obj);
    char text[TIGON2_TEXT] = "";
    char *value = text;

    if (!card_is_running(card, errp)) {
        return;
    }
    if (!card->ops.get(card->model, name, text, sizeof(text))) {
        error_setg(errp, "%s", text);
        return;
    }
    visit_type_str(v, name, &value, errp);
}

static void card_set_property(Object *obj, Visitor *v, const char *name,
                              void *opaque, Error **errp)
{
    Tigon2Card *card = TIGON2_CARD(obj);
    char text[TIGON2_TEXT] = "";
    g_autofree char *value = NULL;

    if (!card_is_running(card, errp) ||
        !visit_type_str(v, name, &value, errp)) {
        return;
    }
    if (!card->ops.set(card->model, name, value, text, sizeof(text))) {
        error_setg(errp, "%s", text);
    }
}

static const Property card_properties[] = {
    DEFINE_NIC_PROPERTIES(Tigon2Card, conf),
    DEFINE_PROP_STRING("model", Tigon2Card, model_path),
    DEFINE_PROP_STRING("socket", Tigon2Card, socket_path),
    DEFINE_PROP_STRING("board", Tigon2Card, board_path),
    DEFINE_PROP_STRING("eeprom", Tigon2Card, eeprom_path),
};

static void card_class_init(ObjectClass *oc, void *data)
{
    DeviceClass *dc = DEVICE_CLASS(oc);

    dc->desc = "Alteon Tigon II gigabit Ethernet card";
    dc->realize = card_realize;
    dc->user_creatable = false;
    device_class_set_props(dc, card_properties);
    for (int i = 0; i < ARRAY_SIZE(model_properties); i++) {
        const char *name = model_properties[i].name;

        object_class_property_add(oc, name, "str",
                                  model_properties[i].readable ?
                                  card_get_property : NULL,
                                  model_properties[i].writable ?
                                  card_set_property : NULL, NULL, NULL);
        object_class_property_set_description(oc, name,
                                              model_properties[i].description);
    }
    RESETTABLE_CLASS(oc)->phases.hold = card_reset_hold;
    set_bit(DEVICE_CATEGORY_NETWORK, dc->categories);
}

static const TypeInfo card_types[] = {
    {
        .name = TYPE_TIGON2_CARD,
        .parent = TYPE_SYS_BUS_DEVICE,
        .instance_size = sizeof(Tigon2Card),
        .class_init = card_class_init,
    },
};

DEFINE_TYPES(card_types)
